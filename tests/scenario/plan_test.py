"""hmmjit plan, cache and doctor: text and JSON agree. cases/plan.txt has the rest."""
import json
import os
import re

import scenario
from scenario import ScratchFolder, ok, run

USAGE, COMPILE = 2, 6


class Plan(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def plan(self, *arguments):
        return run([scenario.program, "plan", "--cache-dir", self.cache, "--no-tuned",
                    *arguments], timeout=120)

    def test_the_answer_is_short(self):
        short = ok(self.plan("--length", "150", "--device", "H200"))
        lines = short.stdout.decode().rstrip("\n").split("\n")
        kernels = json.loads(self.plan("--length", "150", "--device", "H200", "--json").stdout)["searches"][0]["kernels"]
        self.assertEqual(lines[0], "length 150: a search on H200 uses")
        # Some kernels do not depend on the model length.
        self.assertEqual([re.sub(r"(, of targets that \S+ leaves undecided)?, (not )?cached .*", "", line).split(None, 2)
                          for line in lines[1:-2]],
                         [[k["stage"], k["variant"], "for any model" if k["stage"] in ("bias", "gate") else
                           f"for {k['class_length']} positions"] for k in kernels])
        # The second kernel of a stage says why it is there.
        stages = [k["stage"] for k in kernels]
        for index, (line, kernel) in enumerate(zip(lines[1:], kernels)):
            before = [k["variant"] for k in kernels[:index] if k["stage"] == kernel["stage"]]
            self.assertEqual(re.findall(r"of targets that (\S+) leaves undecided", line), before)
        self.assertEqual(stages.count("viterbi"), 2)
        self.assertRegex(lines[-1], r"^1 model, 1 device, \d+ plans, \d+ kernels$")
        explained = self.plan("--length", "150", "--device", "H200", "--explain").stdout
        self.assertGreater(explained.count(b"\n"), 3 * len(lines))
        for word in (b"  slower ", b"  only by name ", b"  for undecided targets lane_scan: ", b"  refused "):
            self.assertIn(word, explained)
            self.assertNotIn(word, short.stdout)
        self.assertNotIn(b"padded cells", short.stdout + explained)
        self.assertIn(b"% padded cells", self.plan("--length", "150", "--device", "H200", "--stage", "ssv").stdout)
        forced = ok(self.plan("--length", "150", "--device", "H200", "--stage", "ssv", "--variant", "multi_lane_byte")).stdout
        self.assertNotRegex(forced, rb"slower|by name|refused")

    def warm(self, *arguments):
        done = run([scenario.program, "cache", "warm", "--cache-dir", self.cache, "--length", "48", *arguments],
                   timeout=120)
        if done.returncode == COMPILE and (b"NVRTC" in done.stderr or b"without the CUDA headers" in done.stderr):
            self.skipTest(done.stderr.decode())
        return done

    def test_the_list_of_cached_kernels_names_them(self):
        ok(self.warm("--target", "sm_90", "--stage", "ssv,bias"))
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

if __name__ == "__main__":
    scenario.main()
