"""hmmjit phmmer, jackhmmer and build against the installed programs of HMMER, byte for byte.

Queries, targets and alignments are random. The seed is printed; HMMJIT_TEST_SEED repeats a run. Recorded runs of HMMER 3.4
are replayed if present.
"""
import gzip
import os
import random
import shutil
import unittest

import scenario
from scenario import SEED, ScratchFolder, SharedInputs, comparable, example_model, first_difference, ok, read, run

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm"]
MISSING = scenario.hmmsearch_missing() or any(
    shutil.which(name) is None for name in ("phmmer", "jackhmmer", "hmmbuild"))

PHMMER_CASES = [
    [], ["--acc"], ["--noali"], ["--notextw"], ["--textw", "150"], ["-E", "1e-10"], ["-T", "30"],
    ["--domE", "1e-6"], ["--incE", "1e-20"], ["--incdomT", "20"], ["--nobias"], ["--nonull2"],
    ["--seed", "7"], ["-Z", "12.5", "--domZ", "3"], ["--cut_ga"], ["--F1", "0.5", "--F2", "0.2"],
    ["--popen", "0.1", "--pextend", "0.7"], ["--mx", "PAM30"], ["--mx", "PAM70"],
    ["--mx", "PAM120"], ["--mx", "PAM240"], ["--mx", "BLOSUM45"], ["--mx", "BLOSUM50"],
    ["--mx", "BLOSUM80"], ["--mx=BLOSUM90"], ["--EmL", "80", "--EmN", "50"],
    ["--EvL", "90", "--EvN", "60", "--EfL", "70", "--EfN", "90", "--Eft", "0.1"]]
# Three rounds each. HMMER 3.3.2 and 3.4 differ in the identity of rows with degenerate residues, so targets for --wgsc,
# --wblosum and --eclust have none.
JACKHMMER_CASES = [
    [], ["--acc"], ["--noali", "-E", "0.001"], ["--notextw"], ["--incE", "1e-10"],
    ["--incT", "40", "--incdomT", "10"], ["--fragthresh", "0.9"], ["--wnone", "--enone"],
    ["--eset", "3.5"], ["--ere", "0.8", "--esigma", "50"], ["--pnone"], ["--plaplace"],
    ["--seed", "5"], ["--popen", "0.05", "--mx", "BLOSUM80"], ["--domE", "1e-5", "-T", "15"]]
JACKHMMER_CLEAN_CASES = [["--wgsc"], ["--wblosum", "--wid", "0.4"], ["--eclust", "--eid", "0.5"]]
BUILD_CASES = [
    [], ["--hand"], ["--symfrac", "0.8"], ["--fragthresh", "0.95"], ["--wgsc"],
    ["--wblosum", "--wid", "0.5"], ["--wnone"], ["--wgiven"], ["--enone"], ["--eset", "2"],
    ["--eclust"], ["--ere", "1"], ["--esigma", "80"], ["--pnone"], ["--plaplace"],
    ["--singlemx"], ["--popen", "0.01"], ["--pextend", "0.8"], ["--maxinsertlen", "5"],
    ["--seed", "9"], ["--EmN", "50", "--EfL", "60"]]

NUCLEIC_CASES = [
    ["--w_beta", "0.01"], ["--w_beta", "0"], ["--w_length", "333"], ["--singlemx", "--w_beta", "1e-3"],
    ["--singlemx", "--pextend", "0.5"], ["--singlemx", "--mx", "DNA1"], ["--hand", "--maxinsertlen", "6"]]


def some(cases):
    """Half of them, drawn at random; with HMMJIT_TEST_ALL all."""
    return cases if "HMMJIT_TEST_ALL" in os.environ else random.Random(SEED).sample(cases, (len(cases) + 1) // 2)


def random_nucleotides(rng, name, degenerate):
    """An alignment of sequences that diverge from one, with degenerate residues, fragments and masked columns; sometimes
    of one row. With models of one or two positions, HMMER's programs crash or change their results from run to run."""
    width, letters = rng.randrange(4, 300), rng.choice(["ACGT", "ACGU"])
    ancestor = rng.choices(letters, [rng.random() for _ in letters], k=width)
    change, rows = rng.random() * 0.5, {}
    for number in range(rng.choice([1, 1, 2, 5, 20, 60])):
        row = [rng.choice(letters + "-" * 4) if rng.random() < change else c for c in ancestor]
        for at in range(width):
            if degenerate and rng.random() < 0.02:
                row[at] = rng.choice("RYMKSWHBVDNn-.*Xacgu")
        if rng.random() < 0.2:
            cut = rng.randrange(width + 1)
            row[:cut] = ["-"] * cut
        rows[f"row{number}"] = "".join(row)
    rows["row0"] = "".join(ancestor)  # some column has residues
    lines = ["# STOCKHOLM 1.0", f"#=GF ID {name}"]
    lines += rng.choice([[], ["#=GF AC DF0001", "#=GF DE repeat", "#=GF GA 20.5;", "#=GF TC 21.25 3;"]])
    lines += [f"{row:8} {text}" for row, text in rows.items()]
    if rng.random() < 0.5:
        lines.append("#=GC RF  " + "".join(rng.choice("xxx.") for _ in range(width - 1)) + "x")
    if rng.random() < 0.5:
        lines.append("#=GC MM  " + "".join(rng.choice("mm......") for _ in range(width)))
    if rng.random() < 0.3:
        lines.append("#=GC SS_cons " + "".join(rng.choice("<>.:") for _ in range(width)))
    return "\n".join(lines) + "\n//\n"


@unittest.skipIf(MISSING, "phmmer, jackhmmer, hmmbuild, hmmemit or hmmer-examples not installed")
class AgainstHmmer(SharedInputs):
    def make_inputs(self):
        self.models = [example_model(name, self.folder) for name in MODELS]
        self.records = scenario.emitted_targets(self.models, SEED, per_model=12, decoys=40)
        scenario.write_embl(self.path("targets.embl"), self.records)
        clean = [[name, text, "".join(c for c in residues if c not in "XBU")]
                 for name, text, residues in self.records]
        scenario.write_fasta(self.path("clean.fasta"), clean)
        rng = random.Random(SEED + 1)
        queries = [clean[rng.randrange(len(clean))] for _ in range(3)]
        odd = [["empty", "", ""], ["W", "one residue", "W"],
               ["degenerate", "", "MKVXLBZJOUAWGHKLMNPQRSTVWYXXKLM" + queries[0][2][:60] + "K"],
               ["stars", "", queries[1][2][:50] + "*" + queries[1][2][50:80]]]
        scenario.write_embl(self.path("queries.embl"), queries + odd[1:])
        scenario.write_fasta(self.path("odd.fasta"), odd)
        scenario.write_fasta(self.path("one.fasta"), queries[:1])

    def compare(self, command, options, outputs, query, targets):
        for name in os.listdir(self.folder):
            if name.startswith(("want.", "got.")):
                os.remove(self.path(name))
        want = ok(run([command, "--cpu", "0"] + self.output_options("want", outputs) + options + [query, targets]))
        ok(run([scenario.program, command, "--quiet", "--device", "cpu"] + self.output_options("got", outputs) +
               options + [query, targets]))
        made = sorted(name[5:] for name in os.listdir(self.folder) if name.startswith("want."))
        self.assertEqual(made, sorted(name[4:] for name in os.listdir(self.folder)
                                      if name.startswith("got.")))
        self.compare_outputs(made, f"{command} {options}")

    def test_phmmer(self):
        outputs = ["o", "A", "tblout", "domtblout", "pfamtblout"]
        for options in some(PHMMER_CASES):
            with self.subTest(options=options):
                self.compare("phmmer", options, outputs, self.path("queries.embl"),
                             self.path("targets.embl"))
        self.compare("phmmer", [], outputs, self.path("odd.fasta"), self.path("clean.fasta"))
        matrix = self.path("matrix")
        with open(matrix, "w") as file:
            letters = "ACDEFGHIKLMNPQRSTVWY"
            file.write("# two kinds of residues\n  " + "  ".join(letters) + "\n")
            for a in letters:
                file.write(a + " " + " ".join(
                    str(6 if a == b else -1 if letters.index(a) % 3 == letters.index(b) % 3 else -4 - (a < b))
                    for b in letters) + "\n")
        self.compare("phmmer", ["--mxfile", matrix], outputs, self.path("queries.embl"),
                     self.path("targets.embl"))

    def test_jackhmmer(self):
        outputs = ["o", "A", "tblout", "domtblout", "chkhmm", "chkali"]
        for cases, targets in ((JACKHMMER_CASES, "targets.embl"),
                               (JACKHMMER_CLEAN_CASES, "clean.fasta")):
            for options in some(cases):
                with self.subTest(options=options):
                    self.compare("jackhmmer", ["-N", "3"] + options, outputs,
                                 self.path("one.fasta"), self.path(targets))
        # Several queries, until they converge.
        self.compare("jackhmmer", [], outputs, self.path("queries.embl"), self.path("targets.embl"))
        # Options of structure prediction.
        self.compare("jackhmmer",
                     ["-N", "1", "--noali", "--F1", "0.0005", "--F2", "0.00005", "--F3",
                      "0.0000005", "--incE", "0.0001", "-E", "0.0001"], ["o", "A", "tblout"],
                     self.path("queries.embl"), self.path("targets.embl"))

    def emitted_alignment(self, model, seed):
        made = ok(run(["hmmemit", "-a", "--seed", str(seed), "-N", "25", model]))
        return made.stdout.decode()

    def compare_build(self, options, alignment, alphabet="--amino"):
        flags = [alphabet] if alphabet else []
        for name in ("want.sto", "got.sto"):
            if os.path.exists(self.path(name)):  # the model of a single sequence has no rows
                os.remove(self.path(name))
        want = ok(run(["hmmbuild", "--cpu", "0", "-O", self.path("want.sto")] + flags + options +
                      [self.path("want.hmm"), alignment]))
        got = ok(run([scenario.program, "build", "-O", self.path("got.sto")] + flags + options +
                     [self.path("got.hmm"), alignment]))
        expected, actual = (comparable("hmm", read(self.path(name + ".hmm"))) for name in ("want", "got"))
        if expected != actual:
            self.fail(f"hmmbuild {options} {alignment}: {first_difference(expected, actual)}")
        expected, actual = (read(self.path(name + ".sto")).decode().split("\n") for name in ("want", "got"))
        if expected != actual:
            self.fail(f"hmmbuild -O {options} {alignment}: {first_difference(expected, actual)}")
        rows = [[line.rstrip() for line in text.decode().split("\n") if line[:1].isdigit()]
                for text in (want.stdout, got.stdout)]
        self.assertEqual(rows[0], rows[1])

    def test_build(self):
        rng = random.Random(SEED + 2)
        path = self.path("several.sto")
        with open(path, "w", encoding="utf-8") as file:
            for number, model in enumerate(self.models):
                text = self.emitted_alignment(model, rng.randrange(1, 2**31))
                # Columns are padded by bytes, not by characters.
                text = text.replace("# STOCKHOLM 1.0\n", f"# STOCKHOLM 1.0\n#=GF ID familé{number}\n"
                                    "#=GF AC PF00001.2\n#=GF DE Söme family\n"
                                    "#=GF GA 20.5 18.25;\n#=GF TC 21 19;\n", 1).replace("-sample1 ", "-sämple1 ")
                file.write(text)
        for options in some(BUILD_CASES):
            with self.subTest(options=options):
                self.compare_build(options, path)
        self.compare_build([], path, alphabet=None)

    def test_build_from_a_sample_of_the_rows(self):
        """Of more than 50,000 rows a sample of 10,000 decides which columns are consensus; another method draws it from more than
        130,000."""
        rng, path = random.Random(SEED + 4), self.path("many.sto")
        for count in (52_000, 131_000):
            with open(path, "w", encoding="utf-8") as file:
                file.write("# STOCKHOLM 1.0\n")
                for number in range(count):  # half of the columns have about as many gaps as residues
                    row = "".join(residue if rng.random() < (0.5, 0.9)[at % 2] else "-" for at, residue in enumerate("ACDEFGHIKLMN"))
                    file.write(f"s{number} {row}\n")
                file.write("//\n")
            self.compare_build(["-n", "many"], path)

    def test_build_nucleotides(self):
        """Recorded and random alignments of DNA and RNA, with random options."""
        rng, clean = random.Random(SEED + 3), []
        paths = [os.path.join(scenario.EXAMPLES, part) for part in
                 ("tutorial/MADE1.sto", "testsuite/ecori.sto", "testsuite/PSE.sto", "testsuite/3box.sto")]
        recorded = os.path.join(scenario.shared_folder() or "", "data/dna/ali")
        for name in sorted(os.listdir(recorded)) if os.path.isdir(recorded) else []:
            paths.append(self.path(name[:-3]))
            with gzip.open(os.path.join(recorded, name)) as source, open(paths[-1], "wb") as copy:
                shutil.copyfileobj(source, copy)
        for number in range(12):
            paths.append(self.path(f"random{number}.sto"))
            if number % 3 == 0:
                clean.append(paths[-1])
            self.write(paths[-1], random_nucleotides(rng, f"random{number}", degenerate=number % 3 != 0))
        for path in paths:
            alphabet = rng.choice(["--rna", "--dna"])
            cases = NUCLEIC_CASES + BUILD_CASES
            if b"#=GC RF" not in read(path):
                cases = [options for options in cases if "--hand" not in options]
            if "random" in path and path not in clean:  # as with jackhmmer
                cases = [options for options in cases if options[:1] not in (["--wgsc"], ["--wblosum"], ["--eclust"])]
            options = rng.choice(cases)
            with self.subTest(path=path, alphabet=alphabet, options=options):
                self.compare_build(options, path, alphabet)
            if "random" not in path:
                self.compare_build([], path, None)

    def test_build_formats(self):
        alignment = self.write("named.sto", self.emitted_alignment(self.models[1], SEED % 1000 + 1))
        self.compare_build(["-n", "given"], alignment)
        rows, reference = {}, ""
        for line in read(alignment).decode().split("\n"):
            if line.startswith("#=GC RF"):
                reference += line.split()[2]
            elif line and not line.startswith(("#", "//")):
                name, text = line.split()
                rows[name] = rows.get(name, "") + text.upper().replace(".", "-")
        width = len(reference)
        names = max(len(name) for name in rows) + 2
        blocks = ["".join(f"{name:{names}}{text[at:at + 50]}\n" for name, text in rows.items())
                  for at in range(0, width, 50)]
        short = [f"row{number:<7}{text}" for number, text in enumerate(rows.values())]
        counts = f" {len(rows)} {width}\n"
        texts = {
            "afa": "".join(f">{name} about it\n{text}\n" for name, text in rows.items()),
            # Insertions are lower case, without padding.
            "a2m": "".join(
                f">{name}\n" + "".join(c if r == "x" else c.lower().replace("-", "")
                                       for c, r in zip(text, reference)) + "\n"
                for name, text in rows.items()),
            "clustal": "CLUSTAL W (1.83) multiple sequence alignment\n\n\n" + "\n".join(
                block + " " * names + "  *\n" for block in blocks),
            "psiblast": "\n".join(blocks),
            "selex": "# comment\n" + "\n".join(
                f"{'#=RF':{names}}{reference[50 * n:50 * n + 50]}\n" + block.replace("-", ".")
                for n, block in enumerate(blocks)),
            "pfam": "# STOCKHOLM 1.0\n" + "".join(
                f"{name} {text}\n" for name, text in rows.items()) + "//\n",
            "phylip": counts + "\n".join(row[:60] for row in short) + "\n" + "".join(
                "\n" + "".join(row[at:at + 60] + "\n" for row in short)
                for at in range(60, width + 10, 60)),
            "phylips": counts + "".join(
                row[:40] + "\n" + row[40:] + "\n" for row in short)}
        for name, text in texts.items():
            with self.subTest(format=name):
                path = self.write("other." + name, text)
                self.compare_build(["--informat", name], path)
                if name in ("afa", "a2m", "clustal", "pfam"):
                    self.compare_build([], path)
                if name in ("a2m", "selex"):
                    self.compare_build(["--informat", name, "--hand"], path)


class Replay(ScratchFolder):
    """A sample of the recorded runs of HMMER 3.4."""
    CASES = ["ph_hbb*", "ph_20aa", "ph_degen", "ph_zero", "ph_opt_[TicF]*", "ph_mx*", "ph_calib",
             "ph_bad*", "ph_dupdb", "ph_tandem", "ph_*_query", "jk_hbb*", "jk_zero", "jk_drop",
             "jk_T", "jk_incT", "jk_20aa", "jk_bad*", "jk_dupdb", "jk_degen", "jk_tandem",
             "jk_wgsc", "jk_wblosum", "jk_eentexp", "jk_nohits", "jk_acc_7less", "jk_m130*",
             "sc_[!bl]*", "sc_lee_ecolihits*", "sc_long"]

    def test_recorded_runs(self):
        tool, nucleic = "replay_programs.py", os.path.join(scenario.shared_folder() or "", "data", "dna")
        scenario.replay(tool, "--program", scenario.program, "--program-hmmscan", scenario.program + " scan", "--options=--quiet",
                        "--work", self.folder, only=self.CASES)
        scenario.replay(tool, "--data", nucleic, "--cases", nucleic + "/expected", "--program-hmmbuild",
                        scenario.program + " build", "--work", self.folder, only=["hb_*"])


if __name__ == "__main__":
    scenario.main()
