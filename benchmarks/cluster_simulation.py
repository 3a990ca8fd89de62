#!/usr/bin/env python3
"""Simulates a search in parts on many nodes that fail and are preempted, from measured figures.

usage: cluster_simulation.py [options]

The default is Pfam-A (27,481 models, 5.3 million positions) against 10^9 proteins (3.3 x 10^11
residues) on 1,000 nodes of 16 cores. Rates come from the options; those of the defaults are measured
ones, as the README and the guide give them: cells a second of a node, core-seconds to read and set
up the models, seconds a task waits for the scheduler, bytes a second of the shared file system, and
domains a second of a merge. Every task is one part; a task that fails or is preempted starts its part
anew on the next free node, as `sbatch --requeue` does.

Prints the time until the last part is complete and the efficiency: the time of computing that is in
the results, over that of all nodes until the end.
"""
import argparse
import heapq
import random

BYTES_PER_RESIDUE = 1.35  # of a database


def simulate(options, failures, preemption):
    rng = random.Random(options.seed)
    cells = options.positions * options.residues
    part_seconds = cells / options.parts / (options.gcups * 1e9)
    # All nodes share the file system. A part's share of the database is read beside its computing;
    # models are read once by each node, before its first part, and lie on its own disk from then on.
    first_seconds = options.model_gigabytes * options.nodes / options.file_system
    database_seconds = options.residues * BYTES_PER_RESIDUE / options.parts * options.nodes / \
        (options.file_system * 1e9)
    compute = max(part_seconds, database_seconds)
    start = options.scheduler + options.setup / options.cores
    waiting = list(range(options.parts))
    idle = list(range(options.nodes))
    seen = [False] * options.nodes
    preempted = [rng.uniform(0, preemption) if preemption else float("inf")
                 for _ in range(options.nodes)]
    events = []  # (time, node, part, whether the part is complete)
    now = 0.0
    restarts = 0
    left = options.parts
    while left:
        while waiting and idle:
            node, part = idle.pop(), waiting.pop()
            needs = start + compute * rng.uniform(1 - options.spread, 1 + options.spread)
            if not seen[node]:
                needs += first_seconds
            stops = now + needs
            if rng.random() < failures:
                stops = now + rng.uniform(0, needs)
            while preempted[node] <= now:
                preempted[node] += preemption
            stops = min(stops, preempted[node])
            seen[node] = True
            heapq.heappush(events, (stops, node, part, stops == now + needs))
        now, node, part, complete = heapq.heappop(events)
        idle.append(node)
        if complete:
            left -= 1
        else:
            restarts += 1
            waiting.append(part)
    return now, part_seconds * options.parts, restarts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    number = {"type": float}
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--parts", type=int, nargs="+", default=[4000, 16000, 64000])
    parser.add_argument("--positions", default=5.3e6, **number)
    parser.add_argument("--residues", default=3.3e11, **number)
    parser.add_argument("--gcups", default=382.0, help="of a node, 10^9 cells a second", **number)
    parser.add_argument("--setup", default=12.0, help="core-seconds to set up all models", **number)
    parser.add_argument("--scheduler", default=1.0, help="seconds from free to running", **number)
    parser.add_argument("--spread", default=0.1, help="of the time of equal parts", **number)
    parser.add_argument("--file-system", default=5.0, help="GB/s for all nodes together", **number)
    parser.add_argument("--model-gigabytes", default=1.0, **number)
    parser.add_argument("--merge-rate", default=2e5, help="domains a second and slice", **number)
    parser.add_argument("--domains", default=1.2e9, **number)
    parser.add_argument("--slices", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    merge = options.domains / options.merge_rate / options.slices
    print(f"merge in {options.slices} slices: {merge:.0f} s")
    print(f"{'parts':>7} {'failures':>9} {'preempted':>12} {'part, s':>8} {'search, s':>10} "
          f"{'restarts':>9} {'efficiency':>11} {'with merge, s':>14}")
    for parts in options.parts:
        for failures, preemption in ((0, 0), (0.01, 0), (0, 1800), (0.01, 1800)):
            case = argparse.Namespace(**{**vars(options), "parts": parts})
            seconds = options.positions * options.residues / parts / (options.gcups * 1e9)
            if preemption and seconds * (1 + options.spread) > preemption:
                print(f"{parts:7d} {failures:9.0%} {'every 30 min':>12} {seconds:8.0f} "
                      "longer than the time between preemptions: never ends")
                continue
            end, useful, restarts = simulate(case, failures, preemption)
            print(f"{parts:7d} {failures:9.0%} {'every 30 min' if preemption else 'never':>12} "
                  f"{seconds:8.0f} {end:10.0f} {restarts:9d} "
                  f"{useful / (end * options.nodes):11.1%} {end + merge:14.0f}")


if __name__ == "__main__":
    main()
