#!/usr/bin/env python3
"""Whether `--device auto` takes the better of CPU and GPU: a grid of jobs, each on the CPU, on the GPU and by `auto`.

usage: auto_grid.py --program PATH --models FILE --targets FILE [--counts N ...] [--megaresidues N ...] [options]

The models are so many of the file, evenly spread over it; the targets so many millions of residues, a part of the file
or copies of it, as a database file. Each job runs --repeats times on each device in turn, after one run that fills the
kernel cache; the medians count. A job whose CPU run would take more than --longest seconds, as the one with half of its
residues lets expect, runs on the GPU and by `auto` alone.

Prints a line per job and writes all to --json. Exits 1 if a run fails, if outputs differ, or if `auto` takes more than
--allowed times the better time, where that exceeds it by more than 0.02 s.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from whole_searches import Table  # noqa: E402


def write_models(path, out, count):
    """Every n-th model of a file."""
    with open(path) as source:
        models = [text + "//\n" for text in source.read().split("//\n") if text.strip()]
    if count > len(models):
        sys.exit(f"{path} has {len(models)} models, not {count}")
    with open(out, "w") as file:
        file.writelines(models[i * len(models) // count] for i in range(count))
    return out


def write_targets(table, path, millions):
    """A database of so many million residues of a FASTA file, again from its start where it ends."""
    out = table.at(f"{millions}.hdb")
    if os.path.exists(out):
        return out
    fasta, left = table.at("part.fasta"), millions * 1_000_000
    with open(fasta, "w") as file:
        while left > 0:
            with open(path) as source:
                for line in source:
                    if line.startswith(">") and left <= 0:
                        break
                    if not line.startswith(">"):
                        left -= len(line) - 1
                    file.write(line)
    subprocess.run([table.programs["hmmjit"], "db", "build", "--quiet", "--output", out, fasta], check=True)
    os.remove(fasta)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--targets", required=True, help="FASTA")
    parser.add_argument("--counts", nargs="+", type=int, default=[1, 4, 16, 64, 349])
    parser.add_argument("--megaresidues", nargs="+", type=int, default=[1, 4, 16, 64, 256, 1024, 2048])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--longest", type=float, default=10)
    parser.add_argument("--allowed", type=float, default=1.1)
    parser.add_argument("--cpu", type=int, default=os.cpu_count())
    parser.add_argument("--work", default="/tmp/hmmjit_auto_grid")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.program = [f"hmmjit={arguments.program}"]
    os.makedirs(arguments.work, exist_ok=True)
    table = Table(arguments)
    os.makedirs(table.cache("hmmjit"), mode=0o700, exist_ok=True)
    lines, wrong = [], 0
    for count in arguments.counts:
        models = write_models(arguments.models, table.at(f"{count}.hmm"), count)
        rate = 0  # millions of residues a second, on the CPU
        for millions in sorted(arguments.megaresidues):
            row = f"{count} x {millions} M"
            targets = write_targets(table, arguments.targets, millions)
            devices = ["cpu", "gpu", "auto"]
            if rate and millions / rate > arguments.longest:
                devices.remove("cpu")
            table.run(row, "hmmjit", models, targets)
            del table.runs[-1]
            for _ in range(arguments.repeats):
                for device in devices:
                    table.run(row, "hmmjit", models, targets, device=device)
                    table.runs[-1]["device"] = device
            table.compare((row,))
            of = {d: [r for r in table.runs if r["row"] == row and r["device"] == d and r["exit"] == 0] for d in devices}
            if not all(of.values()):
                continue
            wall = {d: statistics.median(r["wall"] for r in of[d]) for d in devices}
            if "cpu" in wall:
                rate = millions / wall["cpu"]
            best = min(wall[d] for d in devices if d != "auto")
            bad = wall["auto"] > best * arguments.allowed and wall["auto"] > best + 0.02
            wrong += bad
            taken = of["auto"][-1]["stats"]["gpu"]["state"]
            lines.append(f"| {count} | {millions} | {wall.get('cpu', float('nan')):.2f} | {wall['gpu']:.2f} | "
                         f"{wall['auto']:.2f} ({'GPU' if taken == 'ready' else taken}) | {wall['auto'] / best:.2f}"
                         f"{' !' if bad else ''} |")
    print("\n| models | million residues | CPU, s | GPU, s | auto, s | to the better |\n|---|---|---|---|---|---|")
    print("\n".join(lines))
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(table.runs, out, indent=1)
    return 1 if table.failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
