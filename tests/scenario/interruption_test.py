"""Signals, crashes and too little memory: no partial file under a final name, documented status."""
import os
import resource
import signal
import subprocess
import time
import unittest

import scenario
from scenario import ScratchFolder, example_model, ok, read, search

RESOURCE_ERROR = 5
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU,
           signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM]


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
class Interruption(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = example_model("fn3.hmm", self.folder)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, [["t", "", "ACDEFGHIKLMNPQRSTVWY" * 20]])
        self.results = self.path("results")
        os.mkdir(self.results)

    def outputs(self):
        folder = self.results
        return ["-o", folder + "/o", "-A", folder + "/a", "--tblout", folder + "/t",
                "--domtblout", folder + "/d", "--pfamtblout", folder + "/p",
                "--stats", folder + "/s"]

    def start_endless(self):
        """A search that waits for more targets on its standard input."""
        process = subprocess.Popen(
            [scenario.program, "search", "--quiet"] + self.outputs() + [self.model, "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # It reads large pieces.
        piece = read(self.targets) * 500
        limit = time.time() + 60
        while sum(".tmp-" in name for name in os.listdir(self.results)) < 6:
            self.assertLess(time.time(), limit, "outputs were not begun")
            process.stdin.write(piece)
            process.stdin.flush()
            time.sleep(0.01)
        return process

    def test_signals_leave_nothing(self):
        for number in SIGNALS:
            with self.subTest(signal=number):
                process = self.start_endless()
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
                # Death by the signal, not a status: a shell ends its loop only then.
                self.assertEqual(process.returncode, -number)
                self.assertEqual(errors, b"hmmjit: interrupted; no output was written\n")
                self.assertEqual(os.listdir(self.results), [])

    def test_ignored_signals_stay_ignored(self):
        process = subprocess.Popen(
            ["sh", "-c", "trap '' HUP USR1; exec \"$@\"", "sh", scenario.program, "search", "--quiet",
             self.model, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(read(self.targets))
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(out.endswith(b"[ok]\n"))

    def test_a_crash_leaves_no_temporaries(self):
        for number in (signal.SIGSEGV, signal.SIGABRT):
            process = self.start_endless()
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(os.listdir(self.results), [])

    def files(self):
        """Name, inode and change time of each output."""
        out = set()
        for entry in os.scandir(self.results):
            try:
                out.add((entry.name, entry.stat().st_ino, entry.stat().st_ctime_ns))
            except FileNotFoundError:  # renamed or removed in between
                pass
        return out

    def test_what_a_killed_run_leaves_is_swept_by_the_next(self):
        killed = self.start_endless()
        killed.kill()
        killed.communicate(timeout=60)
        left = self.files()
        self.assertEqual(len(left), 6)
        running = self.start_endless()  # other runs must keep its temporary files
        limit = time.time() + 60
        # They may have the same names.
        while left & self.files() or len(self.files()) < 6:
            self.assertLess(time.time(), limit, "outputs were not begun")
            running.stdin.write(read(self.targets) * 500)
            running.stdin.flush()
            time.sleep(0.01)
        self.assertEqual(len(os.listdir(self.results)), 6)
        ok(search(self.outputs() + [self.model, self.targets]))
        self.assertEqual(len(os.listdir(self.results)), 12)
        running.kill()
        running.communicate(timeout=60)
        ok(search(self.outputs() + [self.model, self.targets]))
        self.assertEqual(len(os.listdir(self.results)), 6)

    def test_threads_or_memory_that_run_out_while_threads_start(self):
        """Exit 5 and one line; never an abort, never a temporary file."""
        statuses = set()
        for megabytes in (40, 44, 50, 60, 80, 100, 150, 200, 300, 500):
            for threads in (4, 16):
                limit = megabytes << 20
                done = subprocess.run(
                    [scenario.program, "search", "--quiet", "--device", "cpu", "--cpu", str(threads)]
                    + self.outputs() + [self.model, self.targets], timeout=300,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                if b"error while loading shared libraries" in done.stderr:
                    continue
                statuses.add(done.returncode)
                with self.subTest(megabytes=megabytes, threads=threads):
                    self.assertIn(done.returncode, (0, RESOURCE_ERROR), done.stderr)
                    if done.returncode != 0:
                        self.assertEqual(os.listdir(self.results), [])
                for name in os.listdir(self.results):
                    os.unlink(os.path.join(self.results, name))
        if 0 not in statuses:
            self.skipTest("the program does not start in 500 MiB (a sanitizer's shadow memory?)")


if __name__ == "__main__":
    scenario.main()
