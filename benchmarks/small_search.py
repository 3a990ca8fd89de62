#!/usr/bin/env python3
"""What a search takes that has next to nothing to do: processor time and page faults of a whole
process, of hmmjit and of hmmsearch, for one model of Debian's hmmer-examples against 45 sequences.

  benchmarks/small_search.py [--program build/release/bin/hmmjit] [--runs 200]
"""
import argparse
import gzip
import os
import resource
import shutil
import subprocess
import tempfile

EXAMPLES = "/usr/share/doc/hmmer/examples/tutorial"


def example(name, folder):
    """The path of an example, unpacked where Debian has it compressed."""
    path = os.path.join(EXAMPLES, name)
    if os.path.exists(path):
        return path
    unpacked = os.path.join(folder, name)
    with gzip.open(path + ".gz") as packed, open(unpacked, "wb") as out:
        shutil.copyfileobj(packed, out)
    return unpacked


def measure(command, runs):
    """Milliseconds of user and system time, and page faults, of one run in the mean."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(runs):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (1e3 * (after.ru_utime - before.ru_utime) / runs, 1e3 * (after.ru_stime - before.ru_stime) / runs,
            (after.ru_minflt - before.ru_minflt) / runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/hmmjit")
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [example("globins4.hmm", folder), example("globins45.fa", folder)]
        print("| command | user ms | system ms | both | page faults |\n|---|---|---|---|---|")
        for command in ([given.program, "search"], [given.program, "search", "--cpu", "1"],
                        ["hmmsearch"], ["hmmsearch", "--cpu", "0"]):
            user, system, faults = measure(command + files, given.runs)
            shown = " ".join([os.path.basename(command[0])] + command[1:])
            print(f"| `{shown}` | {user:.1f} | {system:.1f} | {user + system:.1f} | {faults:.0f} |", flush=True)


if __name__ == "__main__":
    main()
