"""Malformed input: the documented exit status and one clear line, no crash, no hang.

hmmjit refuses those of the recorded edge files (data/edge) that hmmsearch refuses, with the messages of
tests/unit/io/edge_files_test.cpp, and finds hmmsearch's hits in the others, with named exceptions. cases/bad_input.txt
makes its own broken files.
"""
import os
import unittest

import scenario
from scenario import hmmsearch, ok, result_lines, search

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
                want = ok(hmmsearch(["--noali"] + self.arguments(name)))
                self.assertEqual(result_lines(want.stdout), result_lines(done.stdout))


if __name__ == "__main__":
    scenario.main()
