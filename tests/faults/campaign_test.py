"""The n-th call of each function of the C library fails: in a search, a merge, the building of a database, the planning
of a kernel, and in the cache.

usage: campaign_test.py PROGRAM FAULTS_LIBRARY CACHE_TOOL [unittest arguments]

However it ends, a run has a documented status and, if that is not 0, says so in one line; outputs are
complete, or what was there before; no temporary is left; nothing hangs. Without HMMJIT_FAULTS some
calls of each function are tried: the first, the last, and random ones between them, whose seed is printed
(HMMJIT_TEST_SEED repeats it). HMMJIT_FAULTS=all tries every call, which takes long;
HMMJIT_FAULTS=N tries N.
"""
import collections
import concurrent.futures
import errno
import gzip
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario
from scenario import SEED, ScratchFolder, example_model, ok, read, result_lines

library = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 3 else None
cache_tool = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
WANTED = os.environ.get("HMMJIT_FAULTS", "5")
TEMPLATES = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernel_templates"))
INPUT_ERROR, RESOURCES, OUTPUT_ERROR = 3, 5, 7
OLD = b"what was there before\n"
LONGEST_RUN = 60  # seconds; an ordinary one takes a tenth of one

# The functions that fail, and the statuses allowed.
FAULTS = (
    ("read", errno.EIO, (INPUT_ERROR, OUTPUT_ERROR)),
    ("read", errno.EINTR, ()),
    ("pread", errno.EIO, (INPUT_ERROR, OUTPUT_ERROR)),
    ("write", errno.ENOSPC, (OUTPUT_ERROR,)),
    ("write", errno.EINTR, ()),
    ("rename", errno.EIO, (OUTPUT_ERROR,)),
    ("renameat2", errno.EIO, (OUTPUT_ERROR,)),
    ("fsync", errno.EIO, (OUTPUT_ERROR,)),
    ("fdatasync", errno.EIO, (OUTPUT_ERROR,)),
    ("close", errno.EIO, (OUTPUT_ERROR,)),
    ("open", errno.ENOMEM, (RESOURCES, OUTPUT_ERROR)),
    ("fopen", errno.ENOMEM, (RESOURCES,)),
    ("opendir", errno.ENOMEM, (RESOURCES,)),
    ("mmap", errno.ENOMEM, (RESOURCES,)),
    ("pthread_create", errno.EAGAIN, (RESOURCES,)),
    ("malloc", errno.ENOMEM, (RESOURCES,)),
)

# These calls are few, each for a different file.
ALWAYS_ALL = ("open", "fopen", "opendir")


def without_times(content):
    """The reproducible part of an output."""
    return [line for line in result_lines(content) if not line.startswith(("# CPU", "# Mc/sec", "//"))]


class Work:
    """A command and its outputs in a separate folder; `expected`: the outputs of a run without faults."""

    def __init__(self, name, arguments, outputs, exact=True, program=None, environment=None):
        self.name, self.arguments, self.outputs = name, arguments, outputs
        self.exact, self.program, self.environment = exact, program, environment or {}
        self.expected = None

    def run(self, folder, fault, threads=2):
        environment = dict(os.environ, LD_PRELOAD=library, **self.environment, **fault)
        arguments = [argument.replace("{}", folder).replace("{threads}", str(threads))
                     for argument in self.arguments]
        environment = {key: value.replace("{}", folder) for key, value in environment.items()}
        return subprocess.run([self.program or scenario.program] + arguments, env=environment,
                              timeout=LONGEST_RUN, capture_output=True, stdin=subprocess.DEVNULL)

    def content(self, folder):
        """The contents of the existing outputs, by name."""
        found = {}
        for name in sorted(os.listdir(folder)):
            content = read(os.path.join(folder, name))
            if name.endswith(".gz") and content != OLD:
                content = gzip.decompress(content)
            found[name] = content if content == OLD or self.exact else without_times(content)
        return found

    def wrong(self, folder, done, before, statuses):
        """The defect of a run, or nothing."""
        if done.returncode < 0:
            return f"ended by signal {-done.returncode}"
        if done.returncode not in (0,) + statuses:
            return f"status {done.returncode}, of {(0,) + statuses}"
        if done.returncode != 0 and done.stderr.count(b"\n") != 1:
            return "an error has one line"
        now = self.content(folder)
        if done.returncode == 0 and now != self.expected:
            return f"success, but outputs differ: {sorted(now)}"
        if done.returncode != 0 and now != before:
            return f"outputs of a run that failed: {sorted(now)}"
        return None


class CacheWork(Work):
    """A kernel that cannot be kept is a warning; what is kept is whole."""

    def wrong(self, folder, done, before, statuses):
        if b"the test's log" not in done.stderr and done.returncode not in (0, RESOURCES) + statuses:
            return f"status {done.returncode}, of {(0, RESOURCES) + statuses}"
        if b"the test's log" in done.stderr:  # of the compiler that the test pretends to have
            return None
        names = [name for _, _, files in os.walk(folder) for name in files]
        if any("tmp" in name for name in names):
            return f"temporaries: {names}"
        check = subprocess.run([cache_tool, "verify", "--cache-dir", os.path.join(folder, "kernels")],
                               capture_output=True, timeout=LONGEST_RUN)
        return None if check.returncode == 0 else f"damaged entries: {check.stderr} {check.stdout}"


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmemit or hmmer-examples not installed")
class Campaign(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        models = [example_model(name, self.folder) for name in ("fn3.hmm", "globins4.hmm")]
        self.models = self.path("models.hmm")
        with open(self.models, "wb") as file:
            for model in models:
                file.write(scenario.run(["hmmconvert", model]).stdout)
        self.targets = self.path("t.fasta")
        scenario.write_fasta(self.targets, scenario.emitted_targets(models, 3, 8, 20))
        subprocess.run(["gzip", "-k", self.targets], check=True)
        self.database = self.path("t.hjdb")
        probe = subprocess.run([scenario.program, "--version"], capture_output=True,
                               env=dict(os.environ, LD_PRELOAD=library))
        if probe.returncode != 0 or probe.stderr:
            self.skipTest("the program does not run with a preloaded library (a sanitizer?)")
        self.must(["db", "build", "--quiet", "-o", self.database, self.targets])
        os.mkdir(self.path("parts"))
        self.parts = [self.path(f"parts/{i}.hjpart") for i in (1, 2)]
        for i, part in enumerate(self.parts):
            self.must(["search", "--quiet", "--device", "cpu", "--part", f"{i + 1}/2", "--part-file",
                       part, self.models, self.database])

    def must(self, arguments):
        ok(scenario.run([scenario.program] + arguments))

    def works(self):
        files = ["-o", "{}/o", "--tblout", "{}/t", "--domtblout", "{}/d.gz", "--tsv", "{}/tsv"]
        search = ["search", "--quiet", "--device", "cpu", "--cpu", "{threads}"] + files
        return [
            Work("search", search + [self.models, self.targets + ".gz"], 4, exact=False),
            Work("search of a database", search + ["-A", "{}/a", self.models, self.database], 5,
                 exact=False),
            Work("merge", ["merge", "-o", "{}/o", "--tblout", "{}/t", "--tsv", "{}/tsv", self.path("parts")], 3,
                 exact=False),
            Work("plan", ["plan", "--length", "60", "--device", "T4", "--stage", "ssv", "--emit", "source",
                          "-o", "{}/source", "--cache-dir", self.path("none")], 1,
                 environment={"HMMJIT_TEMPLATE_DIR": TEMPLATES}),
            Work("db build", ["db", "build", "--quiet", "-o", "{}/t.hjdb", self.targets + ".gz"], 1),
            CacheWork("cache", ["warm", "--target", "sm_90", "--length", "100", "--length", "200",
                                "--cache-dir", "{}/kernels"], 0, program=cache_tool,
                      environment={"PRETEND_LOG": self.path("compiled")}),
        ]

    def fresh(self, work, label, before):
        folder = self.path(f"{work.name.replace(' ', '_')}_{label}")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        if before == "old":
            for name in work.expected:
                self.write(os.path.join(folder, name), OLD)
        return folder

    def calls_of(self, work, function, before):
        folder, counted = self.fresh(work, "count", before), self.path("count")
        ok(work.run(folder, {"HMMJIT_FAULT": f"{function}:0:0", "HMMJIT_FAULT_COUNT": counted}, 2))
        if work.expected is None and not isinstance(work, CacheWork):
            work.expected = work.content(folder)
            self.assertEqual(len(work.expected), work.outputs)
        return int(read(counted))

    def chosen(self, function, calls):
        if WANTED == "all" or function in ALWAYS_ALL or calls <= int(WANTED):
            return range(1, calls + 1)
        ends = {1, calls}
        return sorted(ends | set(self.random.sample(range(2, calls), int(WANTED) - len(ends))))

    def try_one(self, work, function, number, statuses, call, before):
        label = f"{function}_{errno.errorcode[number]}_{call}"
        folder = self.fresh(work, label, before)
        what = f"{work.name}: {function} {errno.errorcode[number]}, call {call}, outputs {before}"
        try:
            done = work.run(folder, {"HMMJIT_FAULT": f"{function}:{call}:{number}"}, 2)
        except subprocess.TimeoutExpired:
            return 0, f"{what}: hangs"
        there = {name: OLD for name in work.expected} if before == "old" else {}
        wrong = work.wrong(folder, done, there, statuses)
        shutil.rmtree(folder)
        return done.returncode, f"{what}: {wrong}\n{done.stderr.decode()}" if wrong else None

    def test_every_function(self):
        failures, runs, failed = [], 0, collections.Counter()
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for work in self.works():
                work_failed = 0
                for function, number, statuses in FAULTS:
                    replaces = function == "renameat2"  # exchanges an output with the one that is there
                    calls = self.calls_of(work, function, "old" if replaces and work.expected else "none")
                    work.expected = work.expected or {}
                    tried = [pool.submit(self.try_one, work, function, number, statuses, call,
                                         "old" if replaces or call % 2 else "none") for call in self.chosen(function, calls)]
                    for one in tried:
                        status, wrong = one.result()
                        runs += 1
                        work_failed += status != 0
                        failed[function] += status != 0
                        if wrong:
                            failures.append(wrong)
                self.assertGreater(work_failed, 0 if isinstance(work, CacheWork) else 5,
                                   f"{work.name}: hardly any fault was noticed")
        print(f"{runs} runs in {time.monotonic() - begun:.0f} s, with an error: {dict(failed)}")
        self.assertEqual(failures, [], f"{len(failures)} of {runs}:\n" + "\n".join(failures[:20]))


if __name__ == "__main__":
    scenario.main()
