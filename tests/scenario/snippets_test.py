"""Runs the code blocks of a document in order, in a temporary folder.

usage: snippets_test.py PROGRAM SOURCE_DIR LIBRARY_DIR PREFIX DOCUMENT

LIBRARY_DIR contains libhmmjit.so as built. PREFIX is an installation for the blocks that use $prefix, or "-".

The word after a fence is the kind of a block:
  sh      commands, run by bash; any failure fails the test
  text    the output of the block before; a line `...` matches any lines, `...` in a line any text
  python  a script; cpp, c: a program, or the body of its main function. Linked with the library and run
  data    a drawing, a layout or a grammar: not run
not_run.txt lists blocks that cannot be run, with reasons: DOCUMENT | beginning of the block | REASON. An entry without a
block fails, and so does a block without a kind.

The files that documents name (globins4.hmm, Pfam.hmm, proteome.fasta, ...) are small ones made from Debian's
hmmer-examples and mmseqs2-examples. Documents in the root or in kernel_templates run in a copy of the source tree, with
links to its files and copies of its documents; those of an example in a copy of the example.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

import scenario

TUTORIAL = "/usr/share/doc/hmmer/examples/tutorial/"
DATABASE = "/usr/share/doc/mmseqs2/example-data/DB.fasta.gz"
KINDS = ("sh", "text", "python", "cpp", "c", "data")


def not_run(document):
    """(beginning of a block, reason) of each entry for a document."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "not_run.txt"), encoding="ascii") as file:
        entries = [[word.strip() for word in line.split(" | ")] for line in file if line.strip() and line[0] != "#"]
    return [(beginning, reason) for name, beginning, reason in entries if name == document]


class Block:
    def __init__(self, line, kind):
        self.line, self.kind = line, kind
        self.body = ""
        self.reason = self.expected = None


def blocks(text):
    """The blocks of a document, each with its expected output, and complaints."""
    found, complaints, open_block = [], [], None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        fence = re.match(r"^ *```(\S*)\s*$", line)  # indented in a list
        if open_block is None and fence:
            open_block = Block(number, fence.group(1))
            if open_block.kind not in KINDS:
                complaints.append(f"{number}: a block of kind '{open_block.kind}'; known: {', '.join(KINDS)}")
        elif open_block is not None and fence:
            open_block.body = textwrap.dedent(open_block.body)
            if open_block.kind != "text":
                found.append(open_block)
            elif found and found[-1].kind not in ("text", "data"):
                found[-1].expected = open_block.body.splitlines()
            else:
                complaints.append(f"{open_block.line}: output of nothing")
            open_block = None
        elif open_block is not None:
            open_block.body += line
    if open_block is not None:
        complaints.append(f"{open_block.line}: the block does not end")
    return found, complaints


def records(path, count):
    """The first records of a compressed FASTA file, as text."""
    chunks = []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith(">"):
                count -= 1
                if count < 0:
                    break
            chunks.append(line)
    return "".join(chunks)


def reverse_translated(protein):
    codons = dict(zip("ACDEFGHIKLMNPQRSTVWY",
                      "GCT TGT GAT GAA TTT GGT CAT ATT AAA CTT ATG AAT CCT CAA CGT TCT ACT GTT TGG TAT".split()))
    return "".join(codons.get(letter, "GCT") for letter in protein)


def write_stand_ins(folder):
    """Small versions of the files that documents name."""
    def at(name):
        return os.path.join(folder, name)

    def read(name):
        with open(TUTORIAL + name, encoding="ascii") as file:
            return file.read()

    def write(name, text):
        opener = gzip.open if name.endswith((".gz", ".zst")) else open  # hmmjit recognises the content
        with opener(at(name), "wt") as file:
            file.write(text)

    for name in ("globins4.hmm", "fn3.hmm", "Pkinase.hmm", "MADE1.hmm", "dna_target.fa"):
        write(name, read(name))
    write("Pfam.hmm", read("fn3.hmm") + read("Pkinase.hmm"))  # both have gathering cutoffs
    globins, proteins = read("globins45.fa"), records(DATABASE, 500)
    for name in ("proteome.fasta", "proteome.fasta.gz", "proteome.fa.zst", "proteins.fa.gz", "db.fasta",
                 "big.fasta", "big.fasta.gz"):
        write(name, proteins + globins)
    write("a.fasta.zst", proteins)
    write("query.fasta", records(DATABASE, 1))
    write("b.sto", "# STOCKHOLM 1.0\n\n" + "".join(
        f"{name} {residues.replace('-', '')[:140]:140}\n".replace(" \n", "\n")
        for name, _, residues in scenario.fasta_records(globins)[:3] if len(residues) >= 140) + "//\n")
    coding = reverse_translated(scenario.fasta_records(globins)[0][2].replace("-", "").upper())
    write("contigs.fasta", ">contig\n" + "ACGTTGCATA" * 5 + coding + "TAA" + "TTGACCGTAA" * 5 + "\n")


def copy_tree(source, folder):
    """The source tree with links to its files and copies of its documents."""
    for name in os.listdir(source):
        if name in (".git", "build", "docs"):
            continue
        os.symlink(os.path.join(source, name), os.path.join(folder, name))
    shutil.copytree(os.path.join(source, "docs"), os.path.join(folder, "docs"))


def program_text(block):
    """A C or C++ block as a whole program."""
    head = "#include <hmmjit/hmmjit.hpp>\n#include <iostream>\n" if block.kind == "cpp" \
        else "#include <hmmjit/hmmjit.h>\n#include <stdio.h>\n"
    if re.search(r"\bmain\s*\(", block.body):
        return block.body
    includes = [line for line in block.body.splitlines() if line.startswith("#include")]
    body = [line for line in block.body.splitlines() if not line.startswith("#include")]
    return head + "\n".join(includes + ["int main(void) {" if block.kind == "c" else "int main() {"]
                            + body + ["return 0;", "}", ""])


def command_of(block, source, library, folder):
    """The command that runs a block."""
    if block.kind == "sh":
        return ["bash", "-euo", "pipefail", "-c", block.body]
    name = os.path.join(folder, f"block{block.line}")
    if block.kind == "python":
        return [sys.executable, "-c", block.body]
    with open(f"{name}.{block.kind}", "w", encoding="ascii") as file:
        file.write(program_text(block))
    compiler = ["c++", "-std=c++20"] if block.kind == "cpp" else ["cc", "-std=c99"]
    return ["bash", "-euc", '"${@:2}" && exec "$1"', "bash", name, *compiler,
            "-I" + os.path.join(source, "engine/api/include"), "-o", name, f"{name}.{block.kind}",
            "-L" + library, "-lhmmjit", "-Wl,-rpath," + library]


def difference(expected, output):
    """The first expected line that the output lacks in its place, or None."""
    at, skipping = 0, False
    for wanted in expected:
        if wanted.strip() == "...":
            skipping = True
            continue
        pattern = re.compile(".*".join(map(re.escape, wanted.split("..."))))
        while skipping and at < len(output) and not pattern.fullmatch(output[at]):
            at += 1
        if at == len(output) or not pattern.fullmatch(output[at]):
            return wanted
        at, skipping = at + 1, False
    return None if skipping or at == len(output) else "(the end of the output)"


def main():
    if len(sys.argv) != 6:
        print(__doc__)
        return 2
    program, source, library, prefix, document = [os.path.abspath(a) if a != "-" else a for a in sys.argv[1:]]
    name = os.path.relpath(document, source)
    with open(document, encoding="utf-8") as file:
        found, complaints = blocks(file.read())
    for beginning, reason in not_run(name):
        listed = [block for block in found if beginning == "*" or block.body.startswith(beginning)]
        for block in listed:
            block.reason = reason
        if not listed:
            complaints.append(f"not_run.txt: no block begins with '{beginning}'")
    for complaint in complaints:
        print(f"{name}:{complaint}")
    to_run = [block for block in found if block.kind != "data" and not block.reason]
    missing = [path for path in (TUTORIAL + "globins4.hmm", DATABASE) if not os.path.exists(path)]
    if missing and to_run and not complaints:
        print("SKIPPED: not installed:", ", ".join(missing))
        return scenario.SKIPPED
    failures = len(complaints)
    with tempfile.TemporaryDirectory(prefix="hmmjit-snippets-") as scratch:
        folder = os.path.join(scratch, "work")
        if name.startswith("examples/"):
            shutil.copytree(os.path.dirname(document), folder)
        else:
            os.mkdir(folder)
            if not name.startswith("docs/"):
                copy_tree(source, folder)
        if to_run:
            write_stand_ins(folder)
        environment = dict(os.environ, HOME=scratch, HMMJIT_CACHE_DIR=os.path.join(scratch, "cache"),
                           PATH=os.path.dirname(program) + os.pathsep + os.environ["PATH"],
                           PYTHONPATH=os.path.join(source, "engine/api/python"), PYTHONDONTWRITEBYTECODE="1",
                           HMMJIT_LIBRARY=os.path.join(library, "libhmmjit.so"))
        if prefix != "-":
            packages = [os.path.join(where, "pkgconfig") for where, folders, _ in os.walk(prefix)
                        if "pkgconfig" in folders]
            environment.update(prefix=prefix, PKG_CONFIG_PATH=os.pathsep.join(packages),
                               LD_LIBRARY_PATH=os.pathsep.join(os.path.dirname(p) for p in packages))
        for block in found:
            if block.kind == "data":
                continue
            if block.reason:
                print(f"{name}:{block.line}: not run: {block.reason}")
                continue
            begun = time.time()
            done = subprocess.run(command_of(block, source, library, scratch), cwd=folder, env=environment,
                                  timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            output = done.stdout.splitlines()
            missed = None if block.expected is None else difference(block.expected, output)
            print(f"{name}:{block.line}: {block.kind}, {time.time() - begun:.1f} s")
            if done.returncode != 0 or missed:
                failures += 1
                print(f"{name}:{block.line}: exit status {done.returncode}; not found in its place: {missed}")
                print(block.body, "\n".join(output[:30]), sep="---\n")
    print(f"{len(to_run)} blocks run, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
