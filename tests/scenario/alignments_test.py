"""hmmjit accepts the same alignments as hmmbuild and hmmsearch, with equal models and targets.

Alignments in all formats are damaged, in each run by another third of all damages; other files are refused.
"""
import gzip
import re
import shutil
import unittest

import scenario
from scenario import SEED, ScratchFolder, example_model, hmmsearch, read, result_lines, run, search

ROWS = [("one/1-30", "ACDEFGHIKLMNPQRSTVWYACDEFGHIKL"), ("two", "ACDEFGHI--MNPQRSTVWYAC-EFGHIKL"),
        ("three", "-CDEFGHIKLMNPaRSTVWYACDEFGHIK-"), ("four_five", "ACDEFGHIKLMNPgRSTV-YACWWWGHIKL")]
CUT = 18
BLOCKS = [[(name, row[:CUT]) for name, row in ROWS], [(name, row[CUT:]) for name, row in ROWS]]


def blocks(line, end=""):
    return "\n".join("".join(line.format(name, row) + "\n" for name, row in block) + end for block in BLOCKS)


def stockholm():
    text = ("# STOCKHOLM 1.0\n# a comment\n#=GF ID fam\n#=GF AC PF1.2\n#=GF DE some  words\n#=GF GA 20.5 20;\n"
            "#=GF NC 1\n\n" + "".join(f"#=GS {name} WT 0.{i + 5}\n" for i, (name, _) in enumerate(ROWS)) +
            "#=GS two AC Q1\n#=GS two DE  the second\n\n")
    for block in BLOCKS:
        width = len(block[0][1])
        for name, row in block:
            text += f"{name:<12} {row}\n"
            if name == "two":
                text += f"#=GR two SS  {'H' * width}\n#=GR two XX  {'a' * width}\n"
        text += f"#=GC SS_cons {'E' * width}\n#=GC RF       {'x' * width}\n#=GC ZZ       {'z' * width}\n\n"
    return text + "//\n"


def phylip(interleaved):
    text = f" {len(ROWS)} {len(ROWS[0][1])}\n"
    if interleaved:
        text += "".join(f"{name:<10}{row[:10]} {row[10:]}\n" for name, row in BLOCKS[0]) + "\n"
        return text + "".join(row + "\n" for _, row in BLOCKS[1])
    return text + "".join(f"{a[0]:<10}{a[1]}\n{b[1]}\n" for a, b in zip(*BLOCKS))


def upper(text):
    return re.sub("[ag]R", "AR", text)


# By file suffix; some formats can be recognised only by that.
WHOLE = {
    "sto": stockholm(),
    "afa": "".join(f">{name}  some words \n{row[:CUT]}\n{row[CUT:]}\n" for name, row in ROWS),
    "a2m": ">one\nACDEFghiKL\nMNPQ.RS\n>two words\nAC--FgKLMNPqqQRS\n>three\n-CDEFKLMNPO.QRS\n",
    "aln": "CLUSTAL W (1.83) multiple sequence alignment\n\n\n" + blocks("{0:<12} {1} 20", " " * 13 + "*: .*\n"),
    "muscle": "MUSCLE (3.8) multiple sequence alignment\n\n" + blocks("{0:<12} {1}", " " * 13 + "*\n"),
    "pb": upper(blocks("{0:<12} {1}")),
    "slx": "# a comment\n\n" + "\n".join(
        f"#=RF         {'x' * len(block[0][1])}\n" + "".join(f"{name:<12} {row}\n" for name, row in block) +
        f"#=SS         {'H' * len(block[0][1])}\n" for block in BLOCKS),
    "selex_like": blocks("{0:<12} {1}"),
    "phy": upper(phylip(True)),
    "phylip_like": upper(phylip(True)),
    "phys": upper(phylip(False)),
    "phylips_like": upper(phylip(False)),
}
FORMATS = {"sto": "stockholm", "afa": "afa", "a2m": "a2m", "aln": "clustal", "muscle": "clustallike", "pb": "psiblast",
           "slx": "selex", "selex_like": "selex", "phy": "phylip", "phylip_like": "phylip", "phys": "phylips",
           "phylips_like": "phylips"}
REPLACED = "1 \t*~_.-?#>@OjxZ\x01\xc3"


def damaged(text):
    """Pairs of a description and a damaged text."""
    lines = text.split("\n")[:-1]
    yield "whole", text
    yield "CRLF", text.replace("\n", "\r\n")
    yield "no last line end", text[:-1]
    yield "the last line cut", text[:-3]
    yield "blank lines first", "\n \n" + text
    yield "blank lines last", text + "\n\n"
    yield "words last", text + "keys lately\n"
    yield "twice", text + text
    yield "twice, weights once", text + re.sub("#=GS.*WT.*\n", "", text)
    yield "lower case", text.lower()
    for i, line in enumerate(lines):
        def with_line(*new, i=i):
            return "\n".join(lines[:i] + list(new) + lines[i + 1:]) + "\n"
        yield f"line {i + 1} missing", with_line()
        yield f"line {i + 1} twice", with_line(line, line)
        yield f"ends after line {i + 1}", "\n".join(lines[:i + 1]) + "\n"
        yield f"line {i + 1} cut", with_line(line[:-1])
        yield f"line {i + 1} longer", with_line(line + "A")
        yield f"line {i + 1} with blanks", with_line(" " + line + "  ")
        yield f"a word after line {i + 1}", with_line(line + " late")
        yield f"blank line before line {i + 1}", with_line("", line)
        if i + 1 < len(lines):
            yield f"lines {i + 1} and {i + 2} swapped", "\n".join(
                lines[:i] + [lines[i + 1], line] + lines[i + 2:]) + "\n"
        for c in REPLACED[i % 9::9]:
            yield f"line {i + 1} ends with {c!r}", with_line(line[:-1] + c)
            yield f"line {i + 1} with {c!r} inside", with_line(line[:-5] + c + line[-4:])
            yield f"line {i + 1} begins with {c!r}", with_line(c + line[1:])


# Deliberate differences (docs/differences.md), as `compare` reports them.
DIFFERENCES = [r"slx, ends after line [12]: refused", r"phylips?_like, line \d+ with blanks: accepted",
               r"slx, .*: refused: .*could read its profile file: its RF"]
FEW = ["--EmN", "10", "--EvN", "10", "--EfN", "10"]  # targets of the calibration

# Files that are no alignments, which hmmbuild refuses, and words of our message.
FOREIGN = {
    "mail": (b"Dear all,\n\nplease find the alignment attached.\n\nBest\n", "no known format"),
    "empty": (b"", "is empty"),
    "blank": (b"\n  \n", "is empty"),
    "bz2": (b"BZh91AY&SY\x00\x01", "bzcat"),
    "bom": (b"\xef\xbb\xbf" + stockholm().encode(), "byte order mark"),
    "utf16": (stockholm().encode("utf-16"), "UTF-16"),
    "utf16be": (b"\xfe\xff" + stockholm().encode("utf-16-be"), "UTF-16"),
    "rtf": (b"{\\rtf1\\ansi # STOCKHOLM 1.0}", "RTF"),
    "fastq": (b"@r1\nACGT\n+\nIIII\n", "FASTQ"),
    "html": (b"<!DOCTYPE html>\n<html></html>\n", "HTML"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "xz": (b"\xfd7zXZ\x00\x00\x04", "xzcat"),
    "zip": (b"PK\x03\x04abc", "unzip -p"),
    "7z": (b"7z\xbc\xaf\x27\x1c\x00", "7-Zip"),
    "pdf": (b"%PDF-1.4\n", "PDF"),
    "tar": (b"a.file".ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 300, "tar archive"),
    "twice.gz": (gzip.compress(gzip.compress(b"x")), "compressed twice"),
    "hmm": (b"HMMER3/f [3.4]\nNAME a\n", "profile"),
    "pdb": (b"HEADER    OXYGEN TRANSPORT                        07-MAR-84   4HHB\n", "no known format"),
}


def model_of(path):
    return [line for line in read(path).decode("latin-1").split("\n")
            if not line.startswith(("HMMER3/f", "DATE", "COM"))]


@unittest.skipIf(scenario.hmmsearch_missing() or shutil.which("hmmbuild") is None, "HMMER is not installed")
class Alignments(ScratchFolder):
    def compare(self, suffix, text):
        """The difference between the models of the two programs, or None."""
        path, want, got = self.write("x." + suffix, text.encode("latin-1")), self.path("want"), self.path("got")
        theirs = run(["hmmbuild", "--cpu", "0", "--amino", *FEW, want, path])
        ours = run([scenario.program, "build", "--cpu", "1", "--amino", *FEW, got, path])
        if theirs.returncode != 0:
            self.assertIn(ours.returncode, (0, 3), ours.stderr)
            return None if ours.returncode else "accepted"
        if ours.returncode != 0:
            return "refused: " + ours.stderr.decode("latin-1")
        return None if model_of(want) == model_of(got) else "another model"

    def test_models_of_damaged_alignments(self):
        found = []
        for number, (suffix, text) in enumerate(WHOLE.items()):
            for what, changed in list(damaged(text))[(SEED + number) % 3::3]:
                difference = self.compare(suffix, changed)
                if difference is not None:
                    found.append(f"{suffix}, {what}: {difference}")
        self.assertEqual([line for line in found if not any(re.match(each, line) for each in DIFFERENCES)], [])

    def test_targets_of_damaged_alignments(self):
        """Every twentieth, and the undamaged ones; with --max, so that the table has all rows."""
        model = example_model("fn3.hmm", self.folder)
        for suffix, text in WHOLE.items():
            cases = list(damaged(text))
            for what, changed in cases[:1] + cases[7::20]:
                path, results = self.write("t." + suffix, changed.encode("latin-1")), []
                for program in (hmmsearch, search):
                    table = self.path("table")
                    done = program(["--max", "-E", "1e9", "--tformat", FORMATS[suffix], "--tblout", table, "-o",
                                    "/dev/null", model, path])
                    results.append(result_lines(read(table)) if done.returncode == 0 else "refused")
                with self.subTest(suffix=suffix, damage=what):
                    self.assertEqual(*results)

    def test_other_files_are_recognised_by_every_reader(self):
        model = example_model("fn3.hmm", self.folder)
        for name, (data, words) in FOREIGN.items():
            path = self.write("other." + name, data)
            self.assertNotEqual(run(["hmmbuild", self.path("want"), path]).returncode, 0, name)
            named = shutil.copy(path, path + ".fasta")
            commands = [["build", self.path("got"), path], ["search", "--quiet", model, path],
                        ["phmmer", "--quiet", path, path], ["scan", "--quiet", model, path]]
            if words not in ("no known format", "is empty", "profile"):  # for any name and option
                commands += [["search", "--quiet", model, named], ["search", "--quiet", path, model],
                             ["search", "--quiet", "--tformat", "fasta", model, path],
                             ["build", "--informat", "stockholm", self.path("got"), path]]
            for command in commands:
                with self.subTest(file=name, command=command[0]):
                    done = run([scenario.program, *command])
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertIn(words, done.stderr.decode())


if __name__ == "__main__":
    scenario.main()
