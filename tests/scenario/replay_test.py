"""Replays recorded hmmsearch runs with the replay script of the recorded data: all result lines must be identical.

usage: replay_test.py PROGRAM [PATTERN ...]

PATTERN: runs by name, as full_*; default: all but LONG and all but one, drawn at random, of each ONE_OF; with HMMJIT_TEST_ALL all.
"""
import os
import random
import shlex
import subprocess
import sys

import scenario

# Two thirds of the time of all: the same models run against other targets, or without --cut_ga.
LONG = ("cudampf_mmseqs2db", "cudampf_viruses", "lengths_mmseqs2db", "pfammix_mmseqs2db", "pfammix_mmseqs2db_cut_ga",
        "pfammix_yeast_cut_ga")
# Other runs have the same models, targets or options; cases/live.txt has the three cutoffs.
ONE_OF = (("opt_smcn_yeast_max", "padloca_vibrio", "pfammix_ecoli"),
          ("dupont_ecoli_cut_ga", "dupont_ecoli_cut_nc", "dupont_ecoli_cut_tc"))


def main():
    program, patterns = os.path.abspath(sys.argv[1]), sys.argv[2:]
    shared = scenario.shared_folder()
    if shared is None:
        print("SKIPPED: the recorded runs (shared/data/expected) are not here; "
              "set HMMJIT_SHARED to their folder")
        return scenario.SKIPPED
    if not patterns:
        print(f"random seed {scenario.SEED} (HMMJIT_TEST_SEED repeats it)", flush=True)
        rng = random.Random(scenario.SEED)
        left_out = {*LONG, *(name for names in ONE_OF for name in rng.sample(names, len(names) - 1))}
        lines = scenario.read(f"{shared}/data/expected/commands.tsv").decode().splitlines()[1:]
        patterns = [name for name in (line.split("\t")[0] for line in lines)
                    if name not in left_out or "HMMJIT_TEST_ALL" in os.environ]
    return subprocess.run([sys.executable, f"{shared}/tools/replay_expected.py", "--program",
                           f"{shlex.quote(program)} search --quiet", "--only", *patterns]).returncode


if __name__ == "__main__":
    sys.exit(main())
