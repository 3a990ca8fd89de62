"""What a real device is asked to show: every kernel exact, searches with the bytes of the CPU.

usage: device_scenario.py PROGRAM MODELS TARGETS [--sanitize | --machines] [--variants all] [--first-filters MODELS TARGETS]

Exits with 77 where there is no device. With --sanitize the kernels of all stages and a search run
under compute-sanitizer instead (memcheck, racecheck, initcheck, synccheck), on few targets. With
--machines, searches run in environments as administrators make them, and a table of them is printed;
without a device the same environments must do with the CPU.
"""
import argparse
import collections
import concurrent.futures
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
        if done.returncode != 0 or not os.path.exists(base + ".json"):
            return done, None, None
        with open(base + ".json") as file:
            statistics = json.load(file)
        return done, [result_lines(f"{base}.{table}") for table in TABLES], {"launches": 0, **statistics["gpu"]}

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

    def machines(self, device):
        """Environments: name, prefix of the command, variables (None: cannot be made), what --device gpu must do."""
        folder, cores = self.folder, sorted(os.sched_getaffinity(0))
        self.enlarge_targets(self.arguments.residues)
        self.environment = {k: v for k, v in os.environ.items()
                            if k not in ("CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME", "HMMJIT_CACHE_DIR")}
        self.environment["HOME"] = folder
        listed = shutil.which("nvidia-smi") and run(["nvidia-smi", "-L"]).stdout or ""
        uuids = [line.rsplit("UUID: ", 1)[1].rstrip(")") for line in listed.splitlines() if "UUID: GPU-" in line]
        group = self.control_group()
        hidden = ["unshare", "-m", "sh", "-c",
                  'for f in /dev/nvidia*; do [ ! -c $f ] || mount --bind /dev/null $f; done; exec "$@"', "sh"]
        fresh = lambda name, **more: {"HMMJIT_CACHE_DIR": os.path.join(folder, name), **more}
        used, same, either = ("used", "same", "either") if device else ("refused",) * 3
        rows = [("as it is", [], {}, used), ("CUDA_VISIBLE_DEVICES empty", [], {"CUDA_VISIBLE_DEVICES": ""}, "refused"),
                ("CUDA_VISIBLE_DEVICES of absent number", [], {"CUDA_VISIBLE_DEVICES": "77"}, "refused"),
                ("CUDA_VISIBLE_DEVICES of absent UUID", [],
                 {"CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-0000-0000-000000000000"}, "refused"),
                ("CUDA_VISIBLE_DEVICES by UUID", [], {"CUDA_VISIBLE_DEVICES": uuids[0]} if uuids else None, used),
                ("HOME absent", ["env", "-u", "HOME"], {}, same), ("HOME cannot be written", [], {"HOME": "/proc/self"}, same),
                ("cache folder cannot be written", [], {"HMMJIT_CACHE_DIR": "/proc/self/cache"}, same),
                ("no NVRTC, kernels cached", [], {"HMMJIT_NVRTC_DIR": folder}, used),
                ("no NVRTC, no kernels", [], fresh("none", HMMJIT_NVRTC_DIR=folder), either),
                ("mode strict, no kernels", [], fresh("strict", HMMJIT_CACHE_MODE="strict"), either),
                ("no driver", [], {"HMMJIT_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}, "refused"),
                ("container without a GPU", hidden, {} if run([*hidden, "true"]).returncode == 0 else None, "refused"),
                ("affinity of two cores", ["taskset", "-c", ",".join(map(str, cores[:2]))], {}, used),
                ("control group of two cores", ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"],
                 {} if group else None, used)]
        rows += [(f"NVRTC of {path}", [], fresh(f"nvrtc{i}", HMMJIT_NVRTC_DIR=os.path.abspath(path)), used)
                 for i, path in enumerate(self.arguments.nvrtc)]
        done, expected, _ = self.search("cpu", "cpu")
        self.check("CPU", done, expected is not None)
        if expected is None:
            return
        if device:
            run([self.arguments.program, "cache", "warm", "--model", self.arguments.models], env=self.environment)
        print(f"{'environment':40}{'auto':>10}{'gpu':>12}{'launches':>10}{'seconds':>9}", flush=True)
        for row, (name, prefix, more, wanted) in enumerate(rows):
            if more is None:
                print(f"{name:40}{'cannot be made here':>22}", flush=True)
                continue
            usual, self.environment = self.environment, {**self.environment, **more}
            auto, found, _ = self.search(f"auto{row}", "auto", ["--cpu", "1"], prefix)
            demanded, on_device, gpu = self.search(f"gpu{row}", "gpu", ["--cpu", "1"], prefix)
            self.environment = usual
            # A device that is demanded and cannot be used is exit status 4 or 6, and one clear line with its remedy.
            refused = demanded.returncode in (4, 6) and 0 < demanded.stderr.count("\n") <= 2
            equal = on_device == expected
            ok = found == expected and {"used": equal and gpu["launches"] > 0, "same": equal, "refused": refused,
                                        "either": equal or refused}[wanted]
            self.failures += not ok
            verdict = "same" if equal else f"refused ({demanded.returncode})" if refused else "WRONG"
            print(f"{name:40}{'same' if found == expected else 'WRONG':>10}{verdict:>12}{gpu['launches'] if gpu else 0:10}"
                  f"{auto.seconds + demanded.seconds:9.1f}", flush=True)
            if not ok:
                print(f"FAIL exit {auto.returncode}, {demanded.returncode}:", (auto.stderr + demanded.stderr)[-1500:], flush=True)
        if group:
            os.rmdir(group)
        self.starts_at_once(expected, fresh("at_once"))

    def starts_at_once(self, expected, environment, count=32):
        usual, self.environment = self.environment, {**self.environment, **environment}
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            runs = list(pool.map(lambda i: self.search(f"once{i}", "auto", ["--cpu", "1"]), range(count)))
        self.environment = usual
        launches, compiled = (sum(get(gpu) for _, _, gpu in runs if gpu) for get in (
            lambda gpu: gpu["launches"], lambda gpu: gpu.get("kernels", {}).get("compiled", 0)))
        ok = all(done.returncode == 0 and got == expected for done, got, _ in runs)
        self.failures += not ok
        print(f"{f'{count} processes on one empty cache':40}{'same' if ok else 'WRONG':>10}{'':12}{launches:10}"
              f"{max(done.seconds for done, _, _ in runs):9.1f}  {compiled} kernels compiled", flush=True)
        for said, times in collections.Counter((done.returncode, done.stderr[-300:].strip()) for done, _, _ in runs).items():
            if any(said):
                print(f"  {times} times exit {said[0]}: {said[1]}", flush=True)

    @staticmethod
    def control_group():
        """A folder of version 2 with a quota of two cores; None where none can be made."""
        path = f"/sys/fs/cgroup/hmmjit_test_{os.getpid()}"
        try:
            os.mkdir(path)
            with open(path + "/cpu.max", "r+") as file:
                file.write("200000 100000")
            return path
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
            return None

    def variants(self):
        return ["--variant", self.arguments.variants] if self.arguments.variants else []

    def exactness(self):
        for options in (self.variants(), ["--exact-length"]):
            self.check("bench " + " ".join(options), self.kernels(options=options))
        if self.arguments.first_filters:
            self.first_filters(*self.arguments.first_filters)

    def first_filters(self, models, targets):
        """Every variant on models of further lengths; at least as many warps are resident as planned."""
        done = run([self.arguments.program, "bench", "-m", models, "-t", targets, "--repeats", "1", "--json", "--stage", "ssv",
                    "--stage", "msv", "--variant", "all"], env=self.environment)
        measured = json.loads(done.stdout)["measurements"] if done.returncode == 0 else []
        fewer = [f"{m['stage']} {m['variant']} {m['model_length']}" for m in measured
                 if m["warps_per_sm"] < m["planned_warps_per_sm"]]
        self.check("first filters", done, len(measured) > 100 and not fewer, f"{len(measured)} kernels {fewer}")

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
    parser.add_argument("--machines", action="store_true")
    parser.add_argument("--nvrtc", action="append", default=[], metavar="FOLDER", help="another version, with --machines")
    parser.add_argument("--residues", type=int, default=40_000_000, help="of the targets with --machines")
    parser.add_argument("--variants", help="all, or a variant's name; the planner's choice if absent")
    parser.add_argument("--first-filters", nargs=2, metavar=("MODELS", "TARGETS"), help="for every variant of SSV and MSV")
    parser.add_argument("--distinct", type=int, default=60, help="targets under the sanitizer")
    arguments = parser.parse_args()
    doctor = run([arguments.program, "doctor", "--json"])
    checks = json.loads(doctor.stdout).get("checks", []) if doctor.stdout else []
    device = any(c["check"].startswith("device ") and c["outcome"] == "ok" for c in checks)
    if not device and not arguments.machines:
        print("SKIPPED: no GPU can be used here (hmmjit doctor says why)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(arguments, folder)
        if arguments.machines:
            scenario.machines(device)
        elif arguments.sanitize:
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
