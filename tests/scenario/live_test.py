"""hmmjit search against the installed hmmsearch, byte for byte, on random data.

The seed is printed; HMMJIT_TEST_SEED repeats a run.
"""
import os
import re
import unittest

import scenario
from scenario import SEED, ScratchFolder, example_model, hmmsearch, ok, read, result_lines, search

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm"]

# All options of hmmsearch that change results or their layout; on all models, and targets with accessions.
CASES = [
    [], ["--acc"], ["--noali"], ["--notextw"], ["--textw", "150"], ["--textw=200", "--acc"],
    ["-E", "1e-10"], ["-E", "1000"], ["-T", "30"], ["-T", "-20"],
    ["--domE", "1e-6"], ["--domE", "1000"], ["--domT", "12"],
    ["--incE", "1e-20"], ["--incE", "100"], ["--incT", "40"], ["--incdomE", "1e-8"],
    ["--incdomT", "20"], ["-T", "10", "--domT", "5", "--incT", "25", "--incdomT", "15"],
    ["--incT", "20", "--incdomE", "1e-4"], ["--nobias"], ["--nonull2"],
    ["--seed", "7"], ["--seed", "123456"], ["-Z", "1000000"], ["-Z", "12.5"], ["--domZ", "3000"],
    ["-Z", "45", "--domZ", "0.5"], ["--F1", "0.5", "--F2", "0.2", "--F3", "0.1"],
    ["--F1", "0.001"], ["--F2", "1e-6"], ["--F3", "1e-20"], ["--F1", "1", "--F2", "1"],
    ["--F1", "3", "--nobias"], ["--F2", "0"],
]
CUTOFF_MODELS = ["fn3.hmm", "RRM_1.hmm", "Caudal_act.hmm"]


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class AgainstHmmsearch(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.models = [example_model(name, self.folder) for name in MODELS]
        self.records = scenario.emitted_targets(self.models, SEED, per_model=12, decoys=60)
        scenario.write_embl(self.path("targets.embl"), self.records)
        scenario.write_fasta(self.path("targets.fasta"), self.records)
        self.library = self.join_models(self.models)

    def compare(self, options, models, targets):
        """All five outputs of both programs must be equal."""
        outputs = ["o", "A", "tblout", "domtblout", "pfamtblout"]
        want = hmmsearch(self.output_options("want", outputs) + options + [models, targets])
        ok(search(self.output_options("got", outputs) + options + [models, targets]))
        # HMMER 3.3.2 aborts on a few alignments with many insertions; hmmjit has answered.
        if want.returncode < 0 and b"backconverted subseq" in want.stderr:
            self.skipTest(f"hmmsearch aborts: {want.stderr}")
        ok(want)
        self.compare_outputs(outputs, options)

    def test_options(self):
        for options in CASES:
            with self.subTest(options=options):
                self.compare(options, self.library, self.path("targets.embl"))

    def test_fasta_without_accessions(self):
        self.compare([], self.library, self.path("targets.fasta"))
        self.compare(["--acc", "--tformat", "fasta"], self.library, self.path("targets.fasta"))

    def test_cutoffs(self):
        library = self.join_models([example_model(name, self.folder) for name in CUTOFF_MODELS],
                                   "cutoffs.hmm")
        for option in ("--cut_ga", "--cut_nc", "--cut_tc"):
            with self.subTest(option=option):
                self.compare([option], library, self.path("targets.embl"))

    def test_missing_cutoffs_are_refused(self):
        model = example_model("globins4.hmm", self.folder)
        self.assertEqual(hmmsearch(["--cut_ga", model, self.path("targets.fasta")]).returncode, 1)
        refused = search(["--cut_ga", model, self.path("targets.fasta")])
        self.assertEqual(refused.returncode, 3)
        self.assertIn(b"GA bit thresholds unavailable on 1 of 1 models: globins4", refused.stderr)

    def test_max_sensitivity(self):
        few = self.path("few.fasta")
        scenario.write_fasta(few, self.records[:40])
        for options in (["--max"], ["--max", "--nonull2"], ["--max", "-E", "1000", "--seed", "3"]):
            with self.subTest(options=options):
                self.compare(options, self.library, few)

    def test_repeated_names(self):
        twice = self.path("twice.fasta")
        scenario.write_fasta(twice, self.records[:60] + self.records[:60])
        self.compare([], self.library, twice)

    def test_odd_targets(self):
        records = self.records[:20]
        odd = [["empty", "no residues", ""], ["stars", "", "*" * 30], ["one", "", "W"],
               ["x", "all unknown", "X" * 200], ["low", "", "Q" * 150 + "QP" * 60],
               ["star_inside", "", records[0][2][:40] + "*" + records[0][2][40:]],
               ["lower", "", records[1][2].lower()], ["dots", "", records[2][2] + "._~"]]
        path = self.path("odd.fasta")
        scenario.write_fasta(path, odd + records)
        self.compare([], self.library, path)
        self.compare(["--F1", "0.9", "--F2", "0.9", "--F3", "0.5", "-E", "1000"], self.library,
                     path)

    def test_long_multidomain_targets(self):
        fn3 = example_model("fn3.hmm", self.folder)
        emitted = scenario.emitted_targets([fn3], SEED + 1, per_model=60, decoys=0)
        joined = "".join(record[2] for record in emitted)
        path = self.path("long.fasta")
        scenario.write_fasta(path, [["titin_like", "many domains", joined],
                                    ["half", "", joined[:len(joined) // 2]]])
        self.compare([], fn3, path)

    @unittest.skipIf("HMMJIT_TEST_WRITE_INPUTS" not in os.environ, "only ctest names the program that writes these inputs")
    def test_difficult_models_and_targets(self):
        """Everything is reported, so that the tables and counts show scores, domains and decisions of the filters."""
        ok(scenario.run([os.environ["HMMJIT_TEST_WRITE_INPUTS"], self.folder, str(SEED)]))
        everything = ["-E", "1e9", "--domE", "1e9", "-Z", "1", "--domZ", "1"]
        passed = [0, 0, 0, 0]
        for alphabet in ("amino", "DNA", "RNA"):
            models = self.path(alphabet + ".hmm")
            self.compare([*everything, "--F1", "0.4", "--F2", "0.2", "--F3", "0.1"], models, self.path(alphabet + ".fasta"))
            counts = re.findall(rb"Passed \w+ filter: +(\d+)", read(self.path("want.o")))
            passed = [number + sum(map(int, counts[filter::4])) for filter, number in enumerate(passed)]
        self.assertGreater(min(passed), 500)
        for options in ([], ["--nonull2", "--seed", str(SEED)]):
            self.compare([*everything, "--max", *options], self.path("amino.hmm"), self.path("amino.few.fasta"))
            self.assertGreater(len(result_lines(read(self.path("want.domtblout")))), 300)

    def test_restricted_targets(self):
        first = self.records[30][0]
        everything = search(["--noali", self.library, self.path("targets.fasta")])
        part = self.path("part.fasta")
        scenario.write_fasta(part, self.records[30:50])
        want = search(["--noali", self.library, part])
        got = ok(search(["--noali", "--restrictdb_stkey", first, "--restrictdb_n", "20", self.library,
                         self.path("targets.fasta")]))
        self.assertEqual(result_lines(want.stdout), result_lines(got.stdout))
        self.assertNotEqual(result_lines(everything.stdout), result_lines(got.stdout))


if __name__ == "__main__":
    scenario.main()
