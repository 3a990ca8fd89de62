#!/usr/bin/env python3
"""How fast parts are merged, and with how much memory, for any number of domains.

usage: merge_speed.py --models FILE --database FILE --repeat PROGRAM [--domains N ...] [--ranges N] [--mem SIZE]
                      [--all N] [--hmmjit PROGRAM] [--folder DIR] [--check]

Searches once and repeats the part under other ranges of targets (PROGRAM is `repeat_part` of the build), until there
are about so many domains. Prints, of the merge of the report without alignments and `--domtblout`, and of all outputs
where there are no more than --all domains (they are 7 kilobytes a domain), domains a core-second, wall time and peak
memory. --check: every part is verified, and the domains of the table are counted and found in order.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

FEW = {"-o": "report", "--domtblout": "domains"}
ALL = {**FEW, "-A": "alignment", "--tblout": "targets", "--pfamtblout": "pfam", "--tsv": "tsv", "--json": "json",
       "--a3m": "a3m"}


def run(command):
    """Core-seconds, wall seconds and peak megabytes of a command."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {message}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss / 1024


def check_table(path, domains):
    """Every domain is there, and the targets of each model are in the order of their scores."""
    lines, model, score = 0, None, None
    with open(path, "rb") as table:
        for line in table:
            if line.startswith(b"#"):
                continue
            lines += 1
            fields = line.split(None, 8)
            if fields[3] == model and float(fields[7]) > score:
                sys.exit(f"{path}: line of {fields[0].decode()} is out of order")
            model, score = fields[3], float(fields[7])
    if lines != domains:
        sys.exit(f"{path} has {lines} domains, not {domains}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hmmjit", default="hmmjit")
    parser.add_argument("--repeat", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--domains", type=int, nargs="+", default=[1000000, 10000000])
    parser.add_argument("--ranges", type=int, default=16)
    parser.add_argument("--all", type=int, default=1500000)
    parser.add_argument("--mem", default="64M")
    parser.add_argument("--folder")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        single = os.path.join(folder, "single.hjpart")
        # With a search space that is given, what is reported does not depend on the number of copies.
        run([options.hmmjit, "search", "--quiet", "--device", "cpu", "-Z", "20000", "--domZ", "1000", "--part", "1/1",
             "--part-file", single, options.models, options.database])
        table = os.path.join(folder, "single.domains")
        run([options.hmmjit, "merge", "-o", os.devnull, "--domtblout", table, single])
        with open(table, "rb") as file:
            of_one = sum(not line.startswith(b"#") for line in file)
        if of_one == 0:
            sys.exit("the search finds no domain")
        for wanted in options.domains:
            copies = max(1, round(wanted / of_one / options.ranges))
            domains = of_one * copies * options.ranges
            parts = os.path.join(folder, "parts")
            os.mkdir(parts)
            run([options.repeat, single, str(copies), str(options.ranges), parts])
            if options.check:
                for name in sorted(os.listdir(parts)):
                    run([options.hmmjit, "part", "verify", os.path.join(parts, name)])
            size = sum(os.path.getsize(os.path.join(parts, name)) for name in os.listdir(parts))
            print(f"{domains} domains in {options.ranges} parts, {size / 1e6:.0f} MB, --mem {options.mem}", flush=True)
            for label, outputs, words in (("report, domtblout", FEW, ["--noali"]), ("all outputs", ALL, [])):
                if outputs is ALL and domains > options.all:
                    continue
                files = {option: os.path.join(folder, kind) for option, kind in outputs.items()}
                core, wall, megabytes = run([options.hmmjit, "merge", "--mem", options.mem] + words +
                                            [word for pair in files.items() for word in pair] + [parts])
                written = sum(os.path.getsize(path) for path in files.values())
                if options.check:
                    check_table(files["--domtblout"], domains)
                print(f"  {label:18} {core:7.1f} core-s {wall:7.1f} s {domains / core:9.0f} domains/core-s "
                      f"{megabytes:5.0f} MB of memory, {written / 1e6:.0f} MB written", flush=True)
                for path in files.values():
                    os.remove(path)
            shutil.rmtree(parts)


if __name__ == "__main__":
    main()
