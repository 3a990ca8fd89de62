#!/usr/bin/env python3
"""Proves that check_abi.py notices changes: it must pass the interface as it is, and exit 1 for each of
a number of changed copies of the header; --update must record what only adds, and refuse the others.

usage: check_abi_test.py HEADER LIBRARY GOLDEN COMPILER
"""
import os
import shutil
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_abi.py")

# Additions that keep compiled callers working: the text added, and the text it follows.
ADDITIONS = {
    "a member at the end": ("  uint64_t page_targets;", "  uint64_t page_targets; int64_t later;"),
    "a number at the end": ("HMMJIT_REPORT_DFAM_TABLE = 11", "HMMJIT_REPORT_DFAM_TABLE = 11,\n  HMMJIT_REPORT_LATER = 12"),
}
# Each of these changes breaks compiled callers.
BREAKS = {
    "a member of another type": ("  uint32_t seed;           /* of random numbers, 0: an arbitrary one; default 42 */\n  int32_t keep",
                                 "uint64_t seed;\n  int32_t keep"),
    "two members changed places": ("  int32_t prefer_accession; /* show accessions in place of names; default 0 */\n"
                                   "  int32_t alignments; ", "  int32_t alignments; int32_t prefer_accession; "),
    "a member more in the middle": ("  double Z;                /* number", "  double between; double Z; /* number"),
    "a member less": ("  const char *json; ", "  "),
    "an argument more": ("hmmjit_cancellation_create(hmmjit_cancellation **out,",
                         "hmmjit_cancellation_create(int32_t kind, hmmjit_cancellation **out,"),
    "another result": ("size_t hmmjit_results_count(", "int32_t hmmjit_results_count("),
    "another number": ("HMMJIT_CUT_GA = 1", "HMMJIT_CUT_GA = 4"),
    "a function nobody exports": ("#ifdef __cplusplus\n}", "void hmmjit_nowhere(void);\n#ifdef __cplusplus\n}"),
    "a function gone from the header": ("void hmmjit_gpu_free(hmmjit_gpu *gpu);", ""),
}


def check(header, library, golden, compiler, *flags):
    return subprocess.run([sys.executable, "-B", CHECK, header, library, golden, compiler, *flags],
                          capture_output=True, text=True)


def main():
    if len(sys.argv) != 5:
        print(__doc__)
        return 2
    header, library, golden, compiler = sys.argv[1:]
    with open(header, encoding="ascii") as file:
        text = file.read()
    failures = []
    unchanged = check(header, library, golden, compiler)
    if unchanged.returncode != 0:
        failures.append("the interface as it is:\n" + unchanged.stdout + unchanged.stderr)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "hmmjit.h")
        for what, (before, after) in {**ADDITIONS, **BREAKS}.items():
            if text.count(before) != 1:
                failures.append(f"{what}: the header has {text.count(before)} times {before!r}")
                continue
            with open(copy, "w", encoding="ascii") as file:
                file.write(text.replace(before, after))
            description = shutil.copy(golden, os.path.join(folder, "description.txt"))
            for flags, wanted in (([], 1), (["--update"], 0 if what in ADDITIONS else 1)):
                run = check(copy, library, description, compiler, *flags)
                if run.returncode != wanted or "Traceback" in run.stderr:
                    failures.append(f"{what} {flags}: exit status {run.returncode}, not {wanted}\n"
                                    f"{run.stdout}{run.stderr}")
    print("\n".join(failures) or f"{len(ADDITIONS) + len(BREAKS)} changes noticed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
