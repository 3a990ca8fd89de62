#!/usr/bin/env python3
"""Compares the times of two commands, run in turn: on a busy machine, pairs are more precise than separate runs.

    tests/support/paired_times.py [--pairs N] COMMAND OTHER

Each is a shell command. Prints the medians of CPU time and of wall time, and the median ratio of the
second to the first. Exit status 1 where a command fails.
"""
import argparse
import resource
import statistics
import subprocess
import sys
import time


def cost(command):
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    status = subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL).returncode
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if status != 0:
        sys.exit(f"status {status}: {command}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("commands", nargs=2)
    given = parser.parse_args()
    costs = ([], [])
    for pair in range(given.pairs):
        for which in (0, 1) if pair % 2 else (1, 0):
            costs[which].append(cost(given.commands[which]))
    for at, name in enumerate(("processor", "clock")):
        first, second = ([one[at] for one in of_command] for of_command in costs)
        ratio = statistics.median(b / a for a, b in zip(first, second))
        print(f"{name}: {statistics.median(first):.3f} s, {statistics.median(second):.3f} s, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
