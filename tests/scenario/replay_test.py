"""Replays recorded hmmsearch runs through the conformance set's own comparison script.

usage: replay_test.py PROGRAM quick|full
"""
import os
import subprocess
import sys

import scenario

# Every kind of option and model once, about a minute of CPU in all.
QUICK = ["full_*", "opt_rrm1_*", "opt_ksibb_*", "opt_acc_notextw", "cut_ga_*", "dupont_ecoli*",
         "lee_*", "busco_nequitans", "motifs_ecoli", "hmmer_short", "lengths_ecoli",
         "pyhmmer_anaerococcus", "max_2405"]


def main():
    program, extent = os.path.abspath(sys.argv[1]), sys.argv[2]
    shared = scenario.shared_folder()
    if shared is None:
        print("SKIPPED: the recorded runs (shared/data/expected) are not here; "
              "set HMMJIT_SHARED to their folder")
        return scenario.SKIPPED
    command = [sys.executable, os.path.join(shared, "tools", "replay_expected.py"),
               "--program", f"{program} search --quiet"]
    if extent == "quick":
        command += ["--only"] + QUICK
    return subprocess.run(command, cwd=shared).returncode


if __name__ == "__main__":
    sys.exit(main())
