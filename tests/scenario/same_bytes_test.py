"""Results do not depend on threads, the memory bound, the kind of input or the run."""
import gzip
import json
import os
import shutil
import subprocess
import unittest

import scenario
from scenario import SEED, SharedInputs, example_model, first_difference, ok, read, result_lines, search

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm", "Pkinase.hmm"]


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class SameBytes(SharedInputs):
    def make_inputs(self):
        models = [example_model(name, self.folder) for name in MODELS]
        self.library = self.join_models(3 * models)
        self.plain = self.path("targets.fasta")
        scenario.write_fasta(self.plain, scenario.emitted_targets(models, SEED, per_model=40,
                                                                  decoys=300))
        with open(self.plain + ".gz", "wb") as file:  # several members, as bgzip makes them
            data = read(self.plain)
            half = len(data) // 2
            file.write(gzip.compress(data[:half]) + gzip.compress(data[half:]))
        self.inputs = {"plain": self.plain, "gz": self.plain + ".gz", "stdin": "-"}
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", self.plain], check=True)
            self.inputs["zst"] = self.plain + ".zst"
        self.wanted = self.outputs([], "plain")
        self.assertGreater(sum(len(lines) for lines in self.wanted), 500)

    def outputs(self, options, kind, statistics=None):
        """Result lines of the report, both tables and the alignment."""
        paths = [self.path("result." + name) for name in ("o", "t", "d", "a")]
        arguments = ["-o", paths[0], "--tblout", paths[1], "--domtblout", paths[2], "-A", paths[3]]
        if statistics:
            arguments += ["--stats", statistics]
        data = read(self.plain) if kind == "stdin" else None  # a pipe can be read only once
        ok(search(arguments + options + [self.library, self.inputs[kind]], data=data))
        found = [result_lines(read(path)) for path in paths[:3]]
        found.append(read(paths[3]).split(b"\n"))
        return found

    def check(self, options, kind, statistics=None):
        with self.subTest(options=options, input=kind):
            for want, got in zip(self.wanted, self.outputs(options, kind, statistics)):
                if want != got:
                    self.fail(first_difference(want, got))

    def test_threads_and_inputs(self):
        for threads in ("1", "2", "16"):
            self.check(["--cpu", threads], "plain")
        for kind in self.inputs:
            self.check(["--cpu", "7"], kind)

    def test_tight_memory_streams_in_several_passes(self):
        for kind, threads in [("plain", "1"), ("plain", "2"), ("plain", "16")] + [(kind, "7") for kind in self.inputs]:
            statistics = self.path("stats.json")
            self.check(["--cpu", threads, "--mem", "200K"], kind, statistics)
            report = json.loads(read(statistics))
            self.assertTrue(report["targets_streamed"])
            self.assertGreater(report["target_blocks"], 3)
            self.assertGreater(report["target_passes"], 1)
            self.assertEqual(report["targets_spooled"], kind == "stdin")
            if kind == "plain":
                self.assertEqual(report["stages"]["read"]["bytes"],
                                 report["target_passes"] * os.path.getsize(self.inputs[kind]))

    def test_statistics_of_the_stages(self):
        statistics = self.path("stats.json")
        self.check(["--cpu", "2", "--device", "cpu"], "plain", statistics)
        report = json.loads(read(statistics))
        stages = report["stages"]
        whole = ("read", "model_setup", "ssv", "msv", "bias", "viterbi", "scoring", "report")
        self.assertAlmostEqual(sum(stages[name]["share"] for name in whole), 1, places=6)
        for name in ("ssv", "msv", "viterbi", "forward"):
            self.assertGreater(stages[name]["gcups"], 0, name)
        self.assertEqual(stages["read"]["bytes"], os.path.getsize(self.plain))
        self.assertGreater(stages["read"]["megabytes_per_second"], 0)
        parts = ("forward", "backward", "decoding", "ensemble", "clustering", "envelope",
                 "alignment")
        self.assertLess(sum(stages[name]["seconds"] for name in parts),
                        1.01 * stages["scoring"]["seconds"])
        # CPU seconds of threads: none is counted twice.
        self.assertLess(sum(stages[name]["seconds"] for name in whole), 2.02 * report["wall_seconds"])

    def test_named_pipes(self):
        # Like a shell's <(...): opened and read once.
        models, targets = self.path("models.pipe"), self.path("targets.pipe")
        os.mkfifo(models)
        os.mkfifo(targets)
        feeds = [subprocess.Popen(["cp", "--no-preserve=all", source, pipe])
                 for source, pipe in ((self.library, models), (self.plain, targets))]
        done = search(["--tblout", self.path("t"), models, targets], timeout=120)
        for feed in feeds:
            feed.kill()
            feed.wait()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(result_lines(read(self.path("t"))), self.wanted[1])


if __name__ == "__main__":
    scenario.main()
