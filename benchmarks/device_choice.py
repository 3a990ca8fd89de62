#!/usr/bin/env python3
"""Times `--device auto` against both devices, and shows where it takes the slower one.

usage: device_choice.py --models HMM --targets FASTA --queries FASTA [--program PATH] [--repeats N] [--work FOLDER]

Jobs: 1, 10, 100 and all models, one query and all queries, of phmmer and of three rounds of jackhmmer, and 10 to 10,000
sequences to scan, each with parts of the targets and with ten copies of them. Each job runs once to compile its kernels,
then --repeats times on each device in turn; the fastest counts. The last column is the loss of `auto` against the faster
device, marked if it exceeds both 15 % and 0.05 s. Exits 1 if a run fails.
"""
import argparse
import os
import subprocess
import sys
import time


def copies(path, out, residues=None, times=1):
    """The records of `path` up to so many residues, `times` over."""
    lines, seen = [], 0
    with open(path) as stream:
        for line in stream:
            if line[0] == ">" and residues is not None and seen >= residues:
                break
            seen += len(line) - 1 if line[0] != ">" else 0
            lines.append(line)
    with open(out, "w") as stream:
        for number in range(times):
            stream.writelines(f">{number}_{line[1:]}" if line[0] == ">" else line for line in lines)


def records(path, out, count, mark):
    """The first `count` records of `path`, each of which `mark` ends (HMM) or begins (FASTA)."""
    with open(path) as stream, open(out, "w") as first:
        for line in stream:
            count -= line.startswith(mark)
            if mark == "//" and count == 0:
                first.write(line)
            if count < (1 if mark == "//" else 0):
                break
            first.write(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/hmmjit")
    for name in ("models", "targets", "queries"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", default="/tmp/hmmjit_device_choice")
    a = parser.parse_args()
    os.makedirs(a.work, exist_ok=True)

    def at(name):
        return os.path.join(a.work, name)

    parts = {"0.3 M": (300_000, 1), "3 M": (3_000_000, 1), "10 M": (10_000_000, 1), "all": (None, 1), "10 x all": (None, 10)}
    for name, (residues, times) in parts.items():
        copies(a.targets, at(name), residues, times)
    for count in (1, 10, 100):
        records(a.models, at(f"{count} models"), count, "//")
    for count in (10, 1000, 10000):
        records(a.targets, at(f"{count} proteins"), count, ">")
    records(a.queries, at("1 query"), 1, ">")
    models = {**{f"{n} models": at(f"{n} models") for n in (1, 10, 100)}, "all models": a.models}
    queries = {"1 query": at("1 query"), "all queries": a.queries}
    jobs = [(f"search {m} x {t}", ["search", path, at(t)]) for m, path in models.items() for t in parts]
    jobs += [(f"phmmer {q} x {t}", ["phmmer", path, at(t)]) for q, path in queries.items() for t in parts]
    jobs += [(f"jackhmmer {q} x {t}", ["jackhmmer", "-N", "3", path, at(t)]) for q, path in queries.items() for t in list(parts)[:4]]
    jobs += [(f"scan {n} x all models", ["scan", a.models, at(f"{n} proteins")]) for n in (10, 1000, 10000)]
    failed = False
    print(f"| {'job':32} | auto, s | GPU, s | CPU, s | auto / faster |\n|---|---|---|---|---|")
    for name, (program, *rest) in jobs:
        best = {}
        for device in ["gpu"] + ["auto", "gpu", "cpu"] * a.repeats:
            start = time.perf_counter()
            run = subprocess.run([a.program, program, "--quiet", "--noali", "-o", "/dev/null", "--device", device, *rest])
            failed |= run.returncode != 0
            best.setdefault(device, []).append(time.perf_counter() - start)
        auto, gpu, cpu = (min(best[device]) for device in ("auto", "gpu", "cpu"))
        faster = min(gpu, cpu)
        loss = " <<<" if auto > 1.15 * faster and auto > faster + 0.05 else ""
        print(f"| {name:32} | {auto:.2f} | {gpu:.2f} | {cpu:.2f} | {auto / faster:.2f}{loss} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
