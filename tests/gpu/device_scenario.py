"""What a real device is asked to show: every kernel exact, searches with the bytes of the CPU.

usage: device_scenario.py PROGRAM MODELS TARGETS [--sanitize] [--variants all]

Exits with 77 where there is no device. With --sanitize the kernels of all stages and a search run
under compute-sanitizer instead (memcheck, racecheck, initcheck, synccheck), on few targets.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
TABLES = ("out", "tbl", "dom")


def run(command, **keywords):
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, **keywords)
    done.seconds = time.monotonic() - start
    return done


def result_lines_of(text):
    return [line for line in text.splitlines(keepends=True) if not line.startswith(("#", "\n"))]


def result_lines(path):
    with open(path) as file:
        return result_lines_of(file.read())


class Scenario:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.failures = arguments, folder, 0
        self.environment = dict(os.environ, HMMJIT_CACHE_DIR=os.path.join(folder, "cache"))

    def check(self, label, done, also=True, note=""):
        ok = done.returncode == 0 and also
        self.failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {label} ({done.seconds:.1f} s) {note}", flush=True)
        if not ok:
            print((done.stdout[-2000:] + done.stderr[-2000:]).strip(), flush=True)

    def kernels(self, prefix=(), options=()):
        """Scores of every stage against the CPU filters; the program's exit status tells."""
        return run([*prefix, self.arguments.program, "bench", "-m", self.arguments.models, "-t",
                    self.arguments.targets, "--repeats", "1", "--json", *options],
                   env=self.environment)

    def search(self, name, device, options=(), prefix=()):
        base = os.path.join(self.folder, name)
        done = run([*prefix, self.arguments.program, "search", "--quiet", "--device", device, *options,
                    "-o", base + ".out", "--tblout", base + ".tbl", "--domtblout", base + ".dom",
                    "--stats", base + ".json", self.arguments.models, self.arguments.targets],
                   env=self.environment)
        if done.returncode != 0:
            return done, None, None
        with open(base + ".json") as file:
            statistics = json.load(file)
        return done, [result_lines(f"{base}.{table}") for table in TABLES], statistics["gpu"]

    def enlarge_targets(self, residues=40_000_000):
        """Copies of the targets, so many that a search lasts longer than a GPU takes to start."""
        with open(self.arguments.targets) as file:
            text = file.read()
        self.arguments.targets = os.path.join(self.folder, "enlarged.fasta")
        with open(self.arguments.targets, "w") as file:
            for copy in range(max(1, residues // len(text))):
                file.write(text.replace(">", f">{copy}_"))

    def searches(self):
        self.enlarge_targets()
        launched = 0
        for name, options in (("default", []), ("verify", ["--verify", "50"]),
                              ("nobias", ["--nobias"]), ("vram", ["--vram", "64M"]),
                              ("mem", ["--mem", "150M"]), ("loose", ["--F1", "0.1", "--F2", "0.05"]),
                              ("one_thread", ["--cpu", "1"])):
            _, expected, _ = self.search(name + ".cpu", "cpu", [o for o in options if o != "--verify"
                                                                and o != "50"])
            # The first run may end before its kernels are compiled; the second finds them.
            self.search(name + ".gpu", "gpu", options)
            done, got, gpu = self.search(name + ".gpu", "gpu", options)
            self.check(f"search {name}", done, expected is not None and expected == got,
                       f"state {gpu['state']}, {gpu['launches']} launches" if gpu else "")
            launched += gpu["launches"] if gpu else 0
        if launched == 0:
            print("FAIL no search came to use the device", flush=True)
            self.failures += 1

    def wrong_kernel(self):
        """An error in a template: the search is repeated on the CPU, or ends if results have left."""
        _, expected, _ = self.search("wrong.cpu", "cpu")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernel_templates")
        templates = shutil.copytree(source, os.path.join(self.folder, "templates"))
        with open(os.path.join(templates, "bias", "segments.cu"), "r+") as file:
            text = file.read()
            changed = text.replace("p.results[slot] = ", "p.results[slot] = 1.0f + ")
            assert changed != text
            file.seek(0)
            file.write(changed)
        right = self.environment
        self.environment = dict(right, HMMJIT_TEMPLATE_DIR=templates)
        run([self.arguments.program, "cache", "warm", "--model", self.arguments.models], env=self.environment)
        done, got, _ = self.search("wrong.gpu", "gpu", ["--verify", "50"])
        self.check("wrong kernel, files", done,
                   "is repeated on the CPU" in done.stderr and "bias" in done.stderr and expected == got)
        done = run([self.arguments.program, "search", "--quiet", "--device", "gpu", self.arguments.models,
                    self.arguments.targets], env=self.environment)
        repeated = done.returncode == 0 and "is repeated on the CPU" in done.stderr
        ended = done.returncode == 1 and "computes wrong scores" in done.stderr
        done.returncode = 0
        self.check("wrong kernel, standard output", done, (repeated or ended) and
                   (ended or result_lines_of(done.stdout) == expected[0]),
                   "repeated" if repeated else "ended")
        self.environment = right

    def variants(self):
        return ["--variant", self.arguments.variants] if self.arguments.variants else []

    def exactness(self):
        for options in (self.variants(), ["--exact-length"]):
            self.check("bench " + " ".join(options), self.kernels(options=options))

    def sanitized(self):
        tool = shutil.which("compute-sanitizer")
        if tool is None:
            print("SKIPPED: compute-sanitizer is not installed")
            return SKIPPED
        for kind in ("memcheck", "racecheck", "initcheck", "synccheck"):
            prefix = [tool, "--tool", kind, "--error-exitcode", "86"]
            done = self.kernels(prefix, ["--distinct", str(self.arguments.distinct),
                                         *self.variants()])
            self.check(f"{kind} of the kernels", done,
                       note=done.stdout.strip().rsplit("\n", 1)[-1] + done.stderr.strip()[-120:])
        self.sanitized_searches(tool)
        return 0

    def sanitized_searches(self, tool):
        """Whole searches, for the kernels that only a search launches (the domain stage's)."""
        run([self.arguments.program, "cache", "warm", "--model", self.arguments.models],
            env=self.environment)
        self.enlarge_targets(10_000_000)
        _, expected, _ = self.search("sanitized.cpu", "cpu")
        for kind in ("memcheck", "racecheck", "initcheck", "synccheck"):
            prefix = [tool, "--tool", kind, "--error-exitcode", "86"]
            # One thread: the CPU stays busy, so that what a device can do is left to it.
            done, got, gpu = self.search("sanitized.gpu", "gpu", ["--cpu", "1"], prefix)
            on_device = bool(gpu) and gpu["sampled_regions"] > 0 and gpu["scored_envelopes"] > 0
            self.check(f"{kind} of a search", done, on_device and expected == got,
                       (f"{gpu['launches']} launches, {gpu['parsed_targets']} targets parsed, "
                        f"{gpu['sampled_regions']} regions sampled, "
                        f"{gpu['scored_envelopes']} envelopes scored " if gpu else "")
                       + (done.stdout + done.stderr).strip()[-120:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models")
    parser.add_argument("targets")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--variants", help="all, or a variant's name; the planner's choice if absent")
    parser.add_argument("--distinct", type=int, default=60, help="targets under the sanitizer")
    arguments = parser.parse_args()
    doctor = run([arguments.program, "doctor", "--json"])
    checks = json.loads(doctor.stdout).get("checks", []) if doctor.stdout else []
    if not any(c["check"].startswith("device ") and c["outcome"] == "ok" for c in checks):
        print("SKIPPED: no GPU can be used here (hmmjit doctor says why)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(arguments, folder)
        if arguments.sanitize:
            if scenario.sanitized():
                return SKIPPED
        else:
            scenario.exactness()
            scenario.searches()
            scenario.wrong_kernel()
    print(f"{scenario.failures} failures")
    return 1 if scenario.failures else 0


if __name__ == "__main__":
    sys.exit(main())
