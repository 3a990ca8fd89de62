"""Runs test cases from text files: commands, their output and exit status.

usage: cases_test.py PROGRAM CASES [-k WORD]

A file of cases:

  # a comment, behind an empty line
  $ model globins4.hmm         commands before the first title: they begin every case
  ## title of a case           each case runs in its own empty folder, in one bash
  $ hmmjit search globins4.hmm nowhere.fasta
  hmmjit search: nowhere.fasta: cannot be opened...
  [3]

A command continues in lines that begin with `>`. Its output, including standard error, follows; `...` matches any text, a
line `...` any lines. `[N]` is the exit status, unless it is 0. A failing command that begins with `need` skips the case
and prints why. Commands are hmmjit, HMMER's programs and the functions of cases/functions.sh.
"""
import os
import re
import subprocess
import sys
import tempfile

import scenario
from snippets_test import difference

MARK = "==== end of command"


def parse(path):
    """(title, [(line, command, expected lines, status)]) of each case, including the common first commands."""
    setup, cases, outside = [], [], True
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            steps = cases[-1][1] if cases else setup
            if line.startswith("## "):
                cases.append((line[3:], []))
            elif line.startswith("$ "):
                steps.append([number, line[2:], [], 0])
            elif line.startswith("> ") and steps:
                steps[-1][1] += "\n" + line[2:]
            elif re.fullmatch(r"\[\d+\]", line) and steps:
                steps[-1][3] = int(line[1:-1])
            elif steps and line and not (outside and line.startswith("#")):
                steps[-1][2].append(line)
            outside = not line or outside and line.startswith("#")
    return [(title, setup + steps) for title, steps in cases]


def run(steps, folder):
    """Returns a list of problems, or the reason to skip the case."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases", "functions.sh"), encoding="ascii") as file:
        script = file.read() + "umask 022\nexec 2>&1\n"
    for _, command, _, _ in steps:
        script += f"{command}\nprintf '\\n{MARK} %d\\n' $?\n"
    environment = dict(os.environ, PATH=os.path.dirname(scenario.program) + os.pathsep + os.environ["PATH"], LC_ALL="C.UTF-8",
                       HMMJIT_CACHE_DIR=os.path.join(folder, ".cache"), EXAMPLES=scenario.EXAMPLES, PROGRAM=scenario.program,
                       SCENARIO=os.path.dirname(os.path.abspath(__file__)), PYTHONDONTWRITEBYTECODE="1")
    environment.pop("POSIXLY_CORRECT", None)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, timeout=600, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    parts = re.split(rf"\n{MARK} (\d+)\n", done.stdout.decode("utf-8", "replace"))
    problems = []
    for index, (number, command, expected, status) in enumerate(steps):
        if 2 * index + 1 >= len(parts):
            return [f"line {number}: the commands ended here: {parts[-1]}"]
        output, got = parts[2 * index].rstrip("\n").split("\n"), int(parts[2 * index + 1])
        if command.startswith("need") and got != 0:
            return "\n".join(output)
        output = [] if output == [""] else output
        missing = difference(expected, output)
        if got != status or missing is not None:
            problems.append(f"line {number}: {command}\n  exit status {got}, wanted {status}; not found in its place: "
                            f"{missing}\n" + "".join(f"  | {line}\n" for line in output[:40]))
    return problems


def main():
    if len(sys.argv) not in (3, 5):
        print(__doc__)
        return 2
    scenario.program = os.path.abspath(sys.argv[1])
    failed = skipped = count = 0
    for title, steps in parse(sys.argv[2]):
        if len(sys.argv) == 5 and sys.argv[4] not in title:
            continue
        count += 1
        with tempfile.TemporaryDirectory(prefix="hmmjit-case-", dir="/tmp") as folder:  # a name without blanks
            problems = run(steps, folder)
        if isinstance(problems, str):
            skipped += 1
            print(f"{title}: SKIPPED: {problems}")
        elif problems:
            failed += 1
            print(f"{title}: FAILED", *problems, sep="\n")
        else:
            print(f"{title}: passed")
    print(f"{count} cases, {failed} failed, {skipped} skipped")
    return 1 if failed or not count else scenario.SKIPPED if skipped == count else 0


if __name__ == "__main__":
    sys.exit(main())
