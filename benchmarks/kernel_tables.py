#!/usr/bin/env python3
"""Markdown tables of `hmmjit bench --json` files: the figures of kernel_templates/README.md.

usage: kernel_tables.py variants FILE [--lengths M ...]        every variant of a stage, TCUPS
       kernel_tables.py chosen DEFAULT EXACT FORWARD [VARIANTS ...]
                                                              the variant the planner chooses, and how far
                                                              the fastest variant is ahead of it

FILE may be gzipped. A cell in parentheses was measured on a sample of the targets (`--seconds`).
"""
import argparse
import gzip
import json

LENGTHS = (45, 50, 100, 200, 400, 600, 800, 1001, 1301, 1799, 2405, 3591)


def measurements(path):
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as source:
        return json.load(source)["measurements"]


def rate(gcups):
    tcups = gcups / 1e3
    return f"{tcups:.1f}" if tcups >= 9.95 else f"{tcups:.2f}" if tcups >= 0.995 else f"{tcups:.3f}"


def row(cells):
    print("| " + " | ".join(cells) + " |")


def variants(path, lengths):
    found = {}
    for m in measurements(path):
        cells = found.setdefault(m["variant"], {})
        if m["model_length"] not in cells or m["gcups"] > cells[m["model_length"]]["gcups"]:
            cells[m["model_length"]] = m
    row([f"{measurements(path)[0]['stage']}, TCUPS"] + [str(length) for length in lengths])
    print("|" + "---|" * (len(lengths) + 1))
    for name, cells in found.items():
        texts = []
        for length in lengths:
            m = cells.get(length)
            text = rate(m["gcups"]) if m else "-"
            texts.append(f"({text})" if m and m["sample"] else text)
        row([name] + texts)


def chosen(default, exact, forward, others):
    stages = {}
    for m in measurements(default):
        stages.setdefault(m["model_length"], {})[m["stage"]] = m
    own = {m["model_length"]: m for m in measurements(exact)}
    floats = {m["model_length"]: m for m in measurements(forward)}
    best = {}
    for path in others:
        for m in measurements(path):
            key = m["stage"], m["model_length"]
            best[key] = max(best.get(key, 0.0), m["gcups"])
    ahead = {}
    row(["M", "SSV, TCUPS", "SSV, own length", "MSV, TCUPS", "Viterbi, TCUPS", "Forward, GCUPS",
         "bias, % of SSV"])
    print("|" + "---|" * 7)
    for length, of in sorted(stages.items()):
        for stage in ("ssv", "msv", "viterbi"):
            if (stage, length) in best:
                lead = 100 * (best[stage, length] / of[stage]["gcups"] - 1)
                ahead[stage] = max(ahead.get(stage, (-100.0, 0)), (lead, length))
        tiled = " *" if of["viterbi"]["variant"].endswith("tiled") else ""
        share = 100 * of["bias"]["milliseconds"] / of["ssv"]["milliseconds"]
        row([str(length), f"{of['ssv']['gcups'] / 1e3:.2f}", f"{own[length]['gcups'] / 1e3:.2f}",
             f"{of['msv']['gcups'] / 1e3:.2f}", f"{of['viterbi']['gcups'] / 1e3:.2f}{tiled}",
             f"{floats[length]['gcups']:.0f}", f"{share:.1f}"])
    bias = sum(of["bias"]["milliseconds"] for of in stages.values())
    ssv = sum(of["ssv"]["milliseconds"] for of in stages.values())
    print(f"\nbias over all models: {100 * bias / ssv:.1f} % of SSV's time")
    for stage, (lead, length) in ahead.items():
        print(f"{stage}: the fastest variant is at most {lead:.1f} % ahead of the choice (M = {length})")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("variants")
    one.add_argument("file")
    one.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    two = commands.add_parser("chosen")
    for name in ("default", "exact", "forward"):
        two.add_argument(name)
    two.add_argument("others", nargs="*")
    arguments = parser.parse_args()
    if arguments.command == "variants":
        variants(arguments.file, arguments.lengths)
    else:
        chosen(arguments.default, arguments.exact, arguments.forward, arguments.others)


if __name__ == "__main__":
    main()
