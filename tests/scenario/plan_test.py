"""hmmjit plan and doctor as a user meets them: exit statuses, what -o FILE keeps, what counts."""
import json
import os

import scenario
from scenario import ScratchFolder, read, run

USAGE, INPUT, COMPILE = 2, 3, 6


class Plan(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def plan(self, *arguments):
        return run([scenario.program, "plan", "--cache-dir", self.cache, "--no-tuned",
                    *arguments], timeout=120)

    def misses(self):
        done = run([scenario.program, "cache", "stats", "--json", "--cache-dir", self.cache])
        return json.loads(done.stdout)["counters"]["misses"]

    def test_measurements_that_others_could_write_are_not_read(self):
        """The rules of the kernel cache, for tuning.jsonl as well: no hang, no memory, no choice."""
        def tuned(*arguments):
            return run([scenario.program, "plan", "--cache-dir", self.cache, "--length", "60", "--device",
                        "T4", *arguments], timeout=60)

        os.mkdir(self.cache, 0o700)
        path = os.path.join(self.cache, "tuning.jsonl")
        want = tuned("--no-tuned")
        self.assertEqual(want.returncode, 0, want.stderr)
        for mode in (0o700, 0o1777):
            os.chmod(self.cache, mode)
            os.mkfifo(path)
            self.assertEqual(tuned().stdout, want.stdout)
            os.unlink(path)
            with open(path, "wb") as file:
                file.truncate(3 << 30)
            self.assertEqual(tuned().stdout, want.stdout)
            os.unlink(path)

    def test_a_failure_leaves_the_old_file_alone(self):
        path = self.path("kept")
        for arguments in (["--emit", "source"], ["--json"], []):
            with open(path, "w") as file:
                file.write("old")
            done = self.plan("--length", "100", "--stage", "ssv", "--device", "K40", "-o", path,
                             *arguments)
            self.assertEqual(done.returncode, COMPILE, arguments)
            self.assertIn(b"NVRTC 11", done.stderr)
            self.assertEqual(read(path), b"old", arguments)

    def test_emit_is_not_json(self):
        done = self.plan("--length", "100", "--stage", "ssv", "--device", "H200", "--emit",
                         "source", "--json")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"leave out --json", done.stderr)

    def test_unknown_variant_names_the_known_ones(self):
        for arguments in ([], ["--stage", "ssv"]):
            done = self.plan("--length", "100", "--device", "H200", "--variant", "nope",
                             *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"multi_lane_mixed", done.stderr)
            if not arguments:
                self.assertEqual(done.returncode, USAGE)
                self.assertIn(b"viterbi/wavefront", done.stderr)

    def test_a_model_has_at_most_a_million_positions(self):
        done = self.plan("--length", "2000000000", "--device", "H200", "--stage", "ssv")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"at most 1000000 positions", done.stderr)

    def test_planning_counts_no_miss_and_a_kernel_one(self):
        emit = ["--length", "48", "--device", "H200", "--stage", "bias", "--emit", "cubin", "-o",
                self.path("cubin")]
        done = self.plan(*emit)
        if done.returncode == COMPILE and (b"NVRTC" in done.stderr or
                                           b"without the CUDA headers" in done.stderr):
            self.skipTest(done.stderr.decode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.misses(), 1)
        self.assertEqual(self.plan("--length", "48", "--device", "H200").returncode, 0)
        self.assertEqual(self.misses(), 1)

    def test_doctor_reports_a_cache_that_cannot_be_used(self):
        with open(self.path("file"), "w"):
            pass
        for folder in (self.path("file"), self.path("file") + "/below"):
            done = run([scenario.program, "doctor", "--json", "--cache-dir", folder])
            found = {c["check"]: c for c in json.loads(done.stdout)["checks"]}["cache"]
            self.assertEqual(found["outcome"], "problem", found)
            self.assertEqual(done.returncode, 5)

    def test_architectures_without_a_device_in_the_table(self):
        done = self.plan("--length", "100", "--device", "sm_121", "--stage", "ssv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"assumed to be like RTX 5090", done.stdout)
        done = self.plan("--length", "100", "--device", "sm_90a", "--stage", "ssv")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"give sm_90", done.stderr)


if __name__ == "__main__":
    scenario.main()
