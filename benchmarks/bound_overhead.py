#!/usr/bin/env python3
"""What bounds on memory and synchronised publication cost.

usage: bound_overhead.py --models FILE --targets FILE [--mem SIZE ...] [--runs N] [--hmmjit PROGRAM]

Searches without a bound and with each bound in turn, and compares the tables. Then builds a database of the
targets with its fdatasync, and with one that returns at once (through strace, where it is installed). Prints
the median of processor time (user and system), of wall time, and the largest resident size.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def run(command):
    """Core-seconds, wall seconds and peak mebibytes of a command."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {process.stderr.read().decode()}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss / 1024


def show(name, runs, rest=""):
    cpu, wall, peak = zip(*runs)
    print(f"| {name} | {statistics.median(cpu):.2f} | {statistics.median(wall):.2f} | {max(peak):.1f} |{rest}",
          flush=True)


def lines(path):
    with open(path, "rb") as file:
        return [line for line in file if not line.startswith(b"#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hmmjit", default="hmmjit")
    parser.add_argument("--models", required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--mem", nargs="+", default=["400M", "100M"])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:  # not in memory, as /tmp may be
        bounds = [None, *options.mem]
        runs = {bound: [] for bound in bounds}
        tables = {}
        for _ in range(options.runs):
            for bound in bounds:
                table = os.path.join(folder, "hits.tbl")
                runs[bound].append(run(
                    [options.hmmjit, "search", "--quiet", "--device", "cpu", "--domtblout", table,
                     *(["--mem", bound] if bound else []), options.models, options.targets]))
                tables[bound] = lines(table)
        print("| search | CPU s | wall s | peak MiB | table |\n|---|---|---|---|---|")
        for bound in bounds:
            same = "the same" if tables[bound] == tables[None] else "DIFFERS"
            show(f"`--mem {bound}`" if bound else "no bound", runs[bound],
                 f" {len(tables[bound])} domains, {same} |")
        if any(table != tables[None] for table in tables.values()):
            return 1
        if shutil.which("strace") is None:
            print("without strace no other fdatasync can be put in place")
            return 0
        builds = {"fdatasync": [], "fdatasync that returns at once": []}
        for _ in range(options.runs):
            for name, made in builds.items():
                inject = ["-e", "inject=fdatasync:retval=0"] if "once" in name else []
                made.append(run(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync", *inject,
                                 options.hmmjit, "db", "build", "--quiet", "-o",
                                 os.path.join(folder, "targets.hjdb"), options.targets]))
        size = os.path.getsize(os.path.join(folder, "targets.hjdb")) / 2**20
        print(f"\n| `db build`, {size:.0f} MiB | CPU s | wall s | peak MiB |\n|---|---|---|---|")
        for name, made in builds.items():
            show(name, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
