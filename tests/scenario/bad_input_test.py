"""Malformed input: the documented exit status and one clear line, no crash, no hang.

hmmjit refuses those of the recorded edge files (data/edge) that hmmsearch refuses, with the messages of
tests/unit/io/edge_files_test.cpp, and finds hmmsearch's hits in the others, with named exceptions. The second half makes
its own broken files and needs only the hmmer-examples package.
"""
import gzip
import os
import resource
import subprocess
import unittest

import scenario
from scenario import ScratchFolder, example_model, hmmsearch, read, result_lines, search

INPUT_ERROR = 3

# Refused here, accepted by or fatal to hmmsearch, and the reverse (docs/differences.md).
REFUSED_HERE_ONLY = {
    "hmm_bad/header_only.hmm", "hmm_bad/no_terminator.hmm", "hmm_bad/truncated_at_node.hmm",  # end inside a model
    "seq_bad/gz_truncated.fasta.gz"}
ACCEPTED_HERE_ONLY = {
    "hmm_bad/gz_without_suffix.hmm",  # compression is recognised by content
    "seq_odd/length_100001.fasta"}    # long targets are searched


class EdgeFiles(unittest.TestCase):
    def setUp(self):
        self.shared = scenario.shared_folder()
        if self.shared is None:
            self.skipTest("data/edge is not here; set HMMJIT_SHARED to its folder")
        self.data = os.path.join(self.shared, "data")
        with open(os.path.join(self.data, "expected", "edge_behaviour.tsv"), encoding="utf-8") as file:
            rows = [line.split("\t") for line in file if line.startswith("edge/")]
        refused = {row[0][len("edge/"):] for row in rows if row[2] != "accepted"}
        self.refused = (refused | REFUSED_HERE_ONLY) - ACCEPTED_HERE_ONLY

    def arguments(self, name):
        file = os.path.join(self.data, "edge", name)
        if name.startswith("hmm"):
            return [file, os.path.join(self.data, "seq/small/globins45.fa")]
        return [os.path.join(self.data, "hmm/hmmer/globins4.hmm"), file]

    def test_every_file(self):
        names = []
        for folder, _, files in os.walk(os.path.join(self.data, "edge")):
            names += [os.path.relpath(os.path.join(folder, name), os.path.join(self.data, "edge"))
                      for name in files]
        self.assertGreater(len(names), 100)
        for name in sorted(names):
            with self.subTest(file=name):
                done = search(["--noali"] + self.arguments(name), timeout=120)
                message = done.stderr.decode(errors="replace")
                if name in self.refused:
                    self.assertEqual(done.returncode, INPUT_ERROR, message)
                    self.assertEqual(message.count("\n"), 1, message)
                    nucleotides = name.startswith("hmm_nucleotide/") or "alph_dna" in name
                    self.assertIn("illegal character L in" if nucleotides else os.path.basename(name), message)
                    self.assertNotIn(b"[ok]", done.stdout)
                    continue
                self.assertEqual(done.returncode, 0, message)
                dna = name in ("easel_formats/embl", "easel_formats/genbank", "easel_formats/genbank.2")
                self.assertEqual(message.count("looks like DNA"), int(dna), message)
                self.assertEqual(message.count("\n"), int(dna), message)
                self.assertTrue(done.stdout.endswith(b"[ok]\n"))
                if name in ACCEPTED_HERE_ONLY or scenario.hmmsearch_missing():
                    continue
                want = hmmsearch(["--noali"] + self.arguments(name))
                self.assertEqual(want.returncode, 0, (name, want.stderr))
                self.assertEqual(result_lines(want.stdout), result_lines(done.stdout))


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
class BrokenFiles(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = example_model("globins4.hmm", self.folder)
        self.targets = self.path("targets.fasta")
        with open(self.targets, "w") as file:
            file.write(">a some words\nMVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHF\n>b\nACDEF\n")

    def refused(self, arguments, fragment, status=INPUT_ERROR, **keywords):
        done = search(["--tblout", self.path("rows.tbl"), "-o", self.path("report.txt")] +
                      arguments, **keywords)
        message = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, message)
        self.assertIn(fragment, message)
        left = [name for name in os.listdir(self.folder) if "tbl" in name or "report" in name]
        self.assertEqual(left, [], "a failed run must leave no output file")

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_truncated_models_at_every_tenth_line(self):
        lines = read(self.model).split(b"\n")
        for count in range(1, len(lines) - 2, 10):
            cut = self.write("cut.hmm", b"\n".join(lines[:count]) + b"\n")
            self.refused([cut, self.targets], "cut.hmm")

    def test_error_in_a_later_model_keeps_no_table(self):
        good = read(self.model)
        two = self.write("two.hmm", good + good[:len(good) // 2])
        self.refused([two, self.targets], "two.hmm")
        done = search(["--noali", two, self.targets])  # prints the first model's report
        self.assertEqual(done.returncode, INPUT_ERROR)
        self.assertEqual(done.stdout.count(b"Query:"), 1)
        self.assertNotIn(b"[ok]", done.stdout)

    def test_broken_targets(self):
        for name, data, fragment in [
                ("empty.fasta", b"", "empty"), ("blank.fasta", b"\n\n", "empty"),
                ("digits.fasta", b">a\nACD1F\n", ":2"), ("noname.fasta", b">a\nAC\n>\nAC\n", ":3"),
                ("gap.fasta", b">a\nAC-DF\n", "illegal character -"),
                ("text.txt", b"no sequences here, only words\n", "text.txt"),
                ("cut.fa.gz", gzip.compress(read(self.targets) * 50)[:-20], "truncated")]:
            with self.subTest(file=name):
                self.refused([self.model, self.write(name, data)], fragment)

    def test_a_file_of_no_bytes_is_no_search_without_hits(self):
        """A failed step before the search must not look like a search without hits."""
        cases = [(name, [], data) for name in ("e.fa", "e.gb", "e.fasta", "e.txt", "e.fa.gz")
                 for data in (b"", gzip.compress(b""))]
        cases += [("e", ["--tformat", tag], b"") for tag in ("fasta", "embl", "uniprot", "genbank",
                                                            "ddbj", "hmmpgmd")]
        for name, options, data in cases:
            with self.subTest(file=name, options=options, bytes=len(data)):
                self.refused(options + [self.model, self.write(name, data)], "is empty;")
                if not data and options:
                    self.refused(options + [self.model, "-"], "is empty;", data=b"")
                built = scenario.run([scenario.program, "db", "build"] + options +
                                     ["-o", self.path("never.hjdb"), self.write(name, data)])
                self.assertEqual(built.returncode, INPUT_ERROR, built)
                self.assertFalse(os.path.exists(self.path("never.hjdb")))

    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch not installed")
    def test_what_hmmsearch_takes_without_targets(self):
        formats = ["fasta", "hmmpgmd", "embl", "uniprot", "genbank", "ddbj", "stockholm", "pfam",
                   "a2m", "afa", "psiblast", "selex", "clustal", "clustallike", "phylip",
                   "phylips"]
        for data in (b"", b"\n\n", b"  \n"):
            for options, name in [([], "e.fa"), ([], "e.gb"), ([], "e.txt")] + \
                    [(["--tformat", tag], "e.txt") for tag in formats]:
                with self.subTest(data=data, options=options, file=name):
                    targets = self.write(name, data)
                    want = hmmsearch(options + [self.model, targets])
                    got = search(options + [self.model, targets])
                    self.assertEqual(got.returncode, INPUT_ERROR if want.returncode else 0,
                                     (want.stderr, got.stderr))

    def test_memory_that_a_zstd_window_does_not_get_is_no_damage(self):
        # A frame header that requires a window of 2 GiB (RFC 8878, section 3.1.1.1.2), and a raw block.
        body = b">a\n" + b"ACDEFGHIKLMNPQRSTVWY" * 5000 + b"\n"
        frame = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([21 << 3]) + \
            ((len(body) << 3) | 1).to_bytes(3, "little") + body
        path = self.write("window.fa.zst", frame)
        limit = 1500 << 20
        done = subprocess.run(
            [scenario.program, "search", "--quiet", "--cpu", "1", "--device", "cpu", self.model, path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(b"window.fa.zst: out of memory", done.stderr)

    def test_missing_files_and_folders(self):
        self.refused([self.path("none.hmm"), self.targets], "none.hmm")
        self.refused([self.model, self.path("none.fasta")], "none.fasta")
        self.refused([self.folder, self.targets], self.folder)
        self.refused([self.model, self.folder], self.folder)

    def test_usage(self):
        for arguments, fragment in [([self.model], "seqdb is missing"),
                                    (["-", "-"], "but not both"),
                                    (["--mem", "x", self.model, self.targets], "--mem"),
                                    (["--device", "tpu", self.model, self.targets], "--device"),
                                    (["--tformat", "foo", self.model, self.targets], "foo"),
                                    (["--textw", "5", self.model, self.targets], "n>=120")]:
            with self.subTest(arguments=arguments):
                self.refused(arguments, fragment, status=2)
        self.refused(["--device", "gpu", self.model, self.targets], "GPU", status=4)
        self.assertEqual(scenario.run([scenario.program]).returncode, 2)
        self.assertEqual(scenario.run([scenario.program, "nosuch"]).returncode, 2)
        self.assertEqual(scenario.run([scenario.program, "search", "-h"]).returncode, 0)

    def test_long_target_is_searched(self):
        globin = scenario.fasta_records(
            read(os.path.join(scenario.EXAMPLES, "tutorial/globins45.fa")).decode())[0][2].encode()
        path = self.write("long.fasta", b">long\n" + b"GASLEKTVDR" * 12000 + globin * 3 + b"\n")
        done = search(["--noali", self.model, path])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b">> long", done.stdout)

    def test_only_stars_with_max(self):
        path = self.write("stars.fasta", b">stars\n" + b"*" * 50 + b"\n" + read(self.targets))
        done = search(["--max", "--noali", self.model, path])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Target sequences:                          3", done.stdout)


if __name__ == "__main__":
    scenario.main()
