"""Replays recorded hmmsearch runs with the comparison scripts of the recorded data.

usage: replay_test.py PROGRAM [PATTERN ...]

PATTERN: runs by name, as full_*; default: all.

All result lines must be identical; compare_hits.py also compares all tables, and the number of SAME ones is printed.
"""
import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import scenario

# Runs between the replay script and the program: keeps the tables, numbered by run.
KEEPER = """#!/bin/sh
number=$(cat "$KEPT/runs" 2>/dev/null || echo 0)
echo $((number + 1)) >"$KEPT/runs"
{program} search --quiet "$@"
status=$?
for argument; do
  case "$previous" in --tblout|--domtblout)
    [ -f "$argument" ] && cp "$argument" "$KEPT/$number$previous" ;;
  esac
  previous=$argument
done
exit $status
"""


def judge_tables(shared, kept, patterns):
    """The numbers of SAME tables and of all tables."""
    expected = os.path.join(shared, "data", "expected")
    same = total = run = 0
    with open(os.path.join(expected, "commands.tsv")) as commands:
        lines = commands.read().splitlines()[1:]
    for line in lines:
        case, command = line.split("\t", 1)
        if not any(fnmatch.fnmatch(case, pattern) for pattern in patterns):
            continue
        words = shlex.split(command.split(" > ")[0])
        files = [word for word in words if word.startswith(("hmm/", "seq/", "edge/"))]
        runs = range(run, run + len(files) - 1)  # one for each model
        run += len(files) - 1
        for kind, option in (("tbl", "--tblout"), ("domtbl", "--domtblout")):
            wanted = os.path.join(expected, f"{case}.{kind}.gz")
            if not os.path.exists(wanted):
                continue
            joined = os.path.join(kept, "joined")
            with open(joined, "wb") as sink:
                for number in runs:
                    if os.path.exists(f"{kept}/{number}{option}"):
                        sink.write(scenario.read(f"{kept}/{number}{option}"))
            judged = scenario.run(
                [sys.executable, os.path.join(shared, "tools", "compare_hits.py")] +
                (["--dom"] if kind == "domtbl" else []) + [wanted, joined])
            verdict = judged.stdout.decode().strip().split("\n")[-1]
            total += 1
            same += verdict.startswith("SAME")
            if not verdict.startswith("SAME"):
                print(f"{case}.{kind}: {verdict} {judged.stderr.decode().strip()}")
    return same, total


def main():
    program, patterns = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["*"]
    shared = scenario.shared_folder()
    if shared is None:
        print("SKIPPED: the recorded runs (shared/data/expected) are not here; "
              "set HMMJIT_SHARED to their folder")
        return scenario.SKIPPED
    kept = tempfile.mkdtemp(prefix="hmmjit-replay-")
    try:
        keeper = os.path.join(kept, "keeper")
        with open(keeper, "w") as file:
            file.write(KEEPER.replace("{program}", shlex.quote(program)))
        os.chmod(keeper, 0o755)
        command = [sys.executable, os.path.join(shared, "tools", "replay_expected.py"),
                   "--program", shlex.quote(keeper), "--only"] + patterns
        replayed = subprocess.run(command, cwd=shared, env={**os.environ, "KEPT": kept}).returncode
        same, total = judge_tables(shared, kept, patterns)
        print(f"compare_hits.py: {same} of {total} tables SAME")
        return replayed if replayed != 0 else int(total == 0 or same < total)
    finally:
        shutil.rmtree(kept, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
