"""hmmjit plan and doctor as a user meets them: exit statuses, what -o FILE keeps, what counts."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

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

    def test_the_answer_is_short_and_lists_are_taken(self):
        short = self.plan("--length", "150", "--device", "H200")
        self.assertEqual(short.returncode, 0, short.stderr)
        lines = short.stdout.decode().rstrip("\n").split("\n")
        kernels = json.loads(self.plan("--length", "150", "--device", "H200", "--json").stdout)["searches"][0]["kernels"]
        self.assertEqual(lines[0], "length 150: a search on H200 uses")
        # Kernels that know no length of a model are the same for all.
        self.assertEqual([re.sub(r"(, of targets that \S+ leaves undecided)?, (not )?cached .*", "", line).split(None, 2)
                          for line in lines[1:-2]],
                         [[k["stage"], k["variant"], "for any model" if k["stage"] in ("bias", "gate") else
                           f"for {k['class_length']} positions"] for k in kernels])
        # Where a stage has two kernels, the second says why.
        stages = [k["stage"] for k in kernels]
        for index, (line, kernel) in enumerate(zip(lines[1:], kernels)):
            before = [k["variant"] for k in kernels[:index] if k["stage"] == kernel["stage"]]
            self.assertEqual(re.findall(r"of targets that (\S+) leaves undecided", line), before)
        self.assertEqual(stages.count("viterbi"), 2)
        self.assertRegex(lines[-1], r"^1 model, 1 device, \d+ plans, \d+ kernels, ")
        explained = self.plan("--length", "150", "--device", "H200", "--explain").stdout
        self.assertGreater(explained.count(b"\n"), 3 * len(lines))
        self.assertIn(b"rejected ", explained)
        self.assertNotIn(b"rejected ", short.stdout)
        done = self.plan("--length", "150", "--device", "H200,T4", "--stage", "ssv,msv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"1 model, 2 devices, 4 plans", done.stdout)
        done = self.plan("--length", "150", "--device", "H200,nope", "--stage", "ssv")
        self.assertEqual((done.returncode, done.stdout), (USAGE, b""))

    def warm(self, *arguments):
        done = run([scenario.program, "cache", "warm", "--cache-dir", self.cache, "--length", "48", *arguments],
                   timeout=120)
        if done.returncode == COMPILE and (b"NVRTC" in done.stderr or b"without the CUDA headers" in done.stderr):
            self.skipTest(done.stderr.decode())
        return done

    def test_the_list_of_cached_kernels_names_them(self):
        done = self.warm("--target", "sm_90", "--stage", "ssv,bias")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = run([scenario.program, "cache", "list", "--cache-dir", self.cache]).stdout.decode()
        kernels = [entry["kernel"] for entry in
                   json.loads(run([scenario.program, "cache", "list", "--json", "--cache-dir", self.cache]).stdout)]
        self.assertEqual(len(kernels), 2)
        plans = json.loads(self.plan("--length", "48", "--device", "sm_90", "--json").stdout)["searches"][0]["kernels"]
        for stage in ("ssv", "bias"):
            variant = [plan["variant"] for plan in plans if plan["stage"] == stage][0]
            self.assertEqual([kernel for kernel in kernels if kernel.startswith(f"{stage} {variant}, ")
                              and kernel.endswith(" positions")], [kernel for kernel in kernels if stage in kernel])
        for kernel in kernels:
            self.assertIn(f"  {kernel}  ", text)

    def test_kernels_are_not_made_ahead_for_what_nobody_knows(self):
        done = self.warm("--target", "sm_999", "--stage", "ssv")
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertRegex(done.stderr.decode(), r'--target: no architecture "sm_999" is known; the newest that NVRTC')
        done = self.warm("--target", "sm_9O")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"--target: unknown device", done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root can run a program as another user")
    def test_a_home_that_cannot_be_written_is_no_missing_one(self):
        os.chmod(self.folder, 0o755)
        program, home = self.path("hmmjit"), self.path("home")
        shutil.copy(scenario.program, program)
        os.mkdir(home, 0o555)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("HMMJIT_CACHE", "XDG_"))}
        done = subprocess.run([program, "doctor"], env=dict(environment, HOME=home), user=65534, group=65534,
                              extra_groups=[], capture_output=True, timeout=120)
        self.assertIn(f"{home}/.cache: cannot make the kernel cache folder: Permission denied", done.stdout.decode())

    def test_doctor_says_what_is_asked_first_and_what_gpus_need(self):
        system = self.path("system")
        run([scenario.program, "cache", "warm", "--cache-dir", system, "--length", "48", "--target", "sm_90",
             "--stage", "bias"], timeout=120)
        kernels = len(json.loads(run([scenario.program, "cache", "list", "--json", "--cache-dir", system]).stdout))
        for folder, words in ((system, f"{system}, {kernels} kernel" if os.path.isdir(system) else "does not exist"),
                              (self.path("nowhere"), "nowhere does not exist"), ("", "none is wanted")):
            done = run([scenario.program, "doctor", "--json", "--cache-dir", self.cache, "--cache-system-dir", folder])
            checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
            self.assertIn(words, checks["system folder"]["finding"])
        if not any(name.startswith("device ") for name in checks):
            self.assertIn("NVRTC 12 or 13", checks["GPU jobs"]["finding"])

    def test_a_reader_that_has_enough(self):
        for command in ("plan --length 100 --device all --explain", "plan --length 100 --catalogue",
                        "plan --length 100 --device H200 --stage ssv --emit source"):
            for _ in range(3):
                done = subprocess.run(["bash", "-c", f"'{scenario.program}' {command} | head -c 10 >/dev/null; "
                                       "exit ${PIPESTATUS[0]}"], capture_output=True, timeout=120)
                self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE), done.stderr)
                self.assertNotIn(b"cannot write", done.stderr)


if __name__ == "__main__":
    scenario.main()
