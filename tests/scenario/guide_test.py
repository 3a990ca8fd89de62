"""Runs every `sh` block of a document, in order, in one scratch folder.

usage: guide_test.py PROGRAM DOCUMENT

The lines of a `text` block behind a block must occur in its output, in this order.
"""
import os
import re
import subprocess
import sys
import tempfile

import scenario

NEEDED = ["/usr/share/doc/hmmer/examples/tutorial/globins4.hmm",
          "/usr/share/doc/mmseqs2/example-data/DB.fasta.gz"]


def blocks(text):
    """(line number, shell text, expected lines) of each block."""
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        kind, body = match.group(1), match.group(2)
        if kind == "sh":
            found.append([text.count("\n", 0, match.start()) + 1, body, []])
        elif kind == "text":
            found[-1][2] = body.splitlines()
    return found


def main():
    program, document = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    missing = [path for path in NEEDED if not os.path.exists(path)]
    if missing:
        print("SKIPPED: not installed:", ", ".join(missing))
        return scenario.SKIPPED
    with open(document, encoding="ascii") as file:
        found = blocks(file.read())
    if not found:
        print("no block found in", document)
        return 1
    environment = dict(os.environ, PATH=os.path.dirname(program) + ":" + os.environ["PATH"])
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hmmjit-guide-") as folder:
        environment["HMMJIT_CACHE_DIR"] = os.path.join(folder, "cache")
        for line, body, expected in found:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=folder,
                                  env=environment, timeout=300, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            output = done.stdout.splitlines()
            at = 0
            missed = []
            for wanted in expected:
                try:
                    at = output.index(wanted, at) + 1
                except ValueError:
                    missed.append(wanted)
            if done.returncode != 0 or missed:
                failures += 1
                print(f"{document}:{line}: exit status {done.returncode}; missing {missed}")
                print(body, "\n".join(output[-20:]), sep="\n---\n")
    print(f"{len(found)} blocks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
