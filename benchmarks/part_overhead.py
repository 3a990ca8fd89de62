#!/usr/bin/env python3
"""What dividing a search costs: core-seconds of parts and merge beside the search of the whole.

usage: part_overhead.py --models FILE --database FILE [--parts N ...] [--hmmjit PROGRAM] [--threads N]

Runs the search once whole, then in each number of parts, one part after the other, and merges them
with the report and both tables. Prints processor time (user and system) and, of the merge, domains a
second, peak memory, and whether the result lines are the same.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

OUTPUTS = {"-o": "report", "--tblout": "targets", "--domtblout": "domains"}


def run(command):
    """Core-seconds, wall seconds and peak megabytes of a command."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {process.stderr.read().decode()}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss / 1024


def lines(path):
    with open(path, "rb") as file:
        return [line for line in file if not line.startswith(b"#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hmmjit", default="hmmjit")
    parser.add_argument("--models", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    search = [options.hmmjit, "search", "--quiet", "--device", "cpu", "--cpu", str(options.threads)]
    files = [options.models, options.database]
    with tempfile.TemporaryDirectory() as folder:
        def outputs(name):
            return [word for option, kind in OUTPUTS.items()
                    for word in (option, os.path.join(folder, f"{name}.{kind}"))]
        whole, _, _ = run(search + outputs("whole") + files)
        print(f"whole: {whole:.2f} core-s")
        for number in options.parts:
            parts = os.path.join(folder, f"parts{number}")
            os.mkdir(parts)
            seconds = [run(search + ["--part", f"{i}/{number}", "--part-file",
                                     os.path.join(parts, f"{i}.hjpart")] + files)[0]
                       for i in range(1, number + 1)]
            merge, _, megabytes = run([options.hmmjit, "merge"] + outputs("merged") + [parts])
            size = sum(os.path.getsize(os.path.join(parts, name)) for name in os.listdir(parts))
            domains = len(lines(os.path.join(folder, "merged.domains")))
            same = all(lines(os.path.join(folder, f"whole.{kind}")) ==
                       lines(os.path.join(folder, f"merged.{kind}")) for kind in OUTPUTS.values())
            print(f"{number} parts: {sum(seconds):.2f} core-s, {(sum(seconds) - whole) / number:+.2f} "
                  f"a part ({(sum(seconds) / whole - 1):+.1%}); {size / 1e6:.1f} MB; merge "
                  f"{merge:.2f} core-s, {domains} domains, {domains / max(merge, 1e-9):.0f} a "
                  f"core-second, {megabytes:.0f} MB; "
                  f"{'the same lines' if same else 'OTHER LINES'}")


if __name__ == "__main__":
    main()
