"""Calls of the operating system that fail: either all outputs or none, the documented status, one line.

usage: faults_test.py PROGRAM FAULTS_LIBRARY
"""
import errno
import gzip
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario
from scenario import ScratchFolder, example_model, ok, read

library = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
RESOURCES, OUTPUT_ERROR = 5, 7
OLD = b"what was there before\n"


class Faults(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = example_model("fn3.hmm", self.folder)
        self.targets = self.path("t.fasta")
        scenario.write_fasta(self.targets, scenario.emitted_targets([self.model], 3, 20, 20))
        self.results = self.path("results")
        os.mkdir(self.results)
        probe = self.program(["--version"], {})
        if probe.returncode != 0 or probe.stderr:
            self.skipTest("the program does not run with a preloaded library (a sanitizer?)")

    def program(self, arguments, fault, **keywords):
        environment = dict(os.environ, LD_PRELOAD=library, **fault)
        return subprocess.run([scenario.program] + arguments, env=environment, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)

    def outputs(self):
        return [word for option, name in (
            ("-o", "o"), ("-A", "a"), ("--tblout", "t"), ("--domtblout", "d"),
            ("--pfamtblout", "p"), ("--tsv", "tsv"), ("--json", "json"), ("--a3m", "a3m"),
            ("--stats", "s"), ("--trace", "trace")) for word in (option, f"{self.results}/{name}")]

    def names(self):
        return sorted(self.outputs()[1::2])

    def state(self):
        """"none", "old" or "new" for all outputs together; "mixed" otherwise."""
        there = {os.path.join(self.results, name) for name in os.listdir(self.results)}
        if not there:
            return "none"
        if there != set(self.names()):
            return f"mixed: {sorted(there)}"
        old = {name for name in there if read(name) == OLD}
        return "old" if old == there else "mixed: old " + str(sorted(old)) if old else "new"

    def restore(self, before):
        for name in os.listdir(self.results):
            os.unlink(os.path.join(self.results, name))
        for name in self.names() if before == "old" else []:
            self.write(name, OLD)

    def count(self, arguments, function):
        counted = self.path("count")
        ok(self.program(arguments, {"HMMJIT_FAULT": f"{function}:0:0", "HMMJIT_FAULT_COUNT": counted}))
        return int(read(counted))

    def search(self):
        return ["search", "--quiet", "--device", "cpu", "--cpu", "1"] + self.outputs() + \
            [self.model, self.targets]

    def test_every_call_of_an_output(self):
        for function, number in (("write", errno.ENOSPC), ("close", errno.EIO), ("renameat2", errno.EIO),
                                 ("rename", errno.EIO), ("fchmod", errno.EPERM)):
            noticed = 0
            for before in ("none", "old"):
                self.restore(before)
                calls = self.count(self.search(), function)
                for call in range(1, calls + 2):
                    with self.subTest(function=function, errno=errno.errorcode[number], call=call,
                                      before=before):
                        self.restore(before)
                        done = self.program(self.search(),
                                            {"HMMJIT_FAULT": f"{function}:{call}:{number}"})
                        self.assertIn(done.returncode, (0, OUTPUT_ERROR), done.stderr)
                        self.assertEqual(self.state(), before if done.returncode else "new")
                        self.assertEqual(done.stderr.count(b"\n"), 1 if done.returncode else 0)
                        noticed += done.returncode != 0
            print(f"{function} {errno.errorcode[number]}: up to {calls} calls, {noticed} failed")
            self.assertGreater(noticed, -1 if function == "fchmod" else 0)

    def test_memory_that_a_decompressor_does_not_get_is_no_damage(self):
        """zlib allocates its window when its first output buffer is full."""
        targets = self.path("large.fasta.gz")
        residues = random.Random(20264).choices(list(scenario.BACKGROUND), k=100_000)
        with gzip.open(targets, "wt", 1) as file:
            for number in range(40):
                file.write(f">t{number}\n" + "".join(residues) + "\n")
        search = ["search", "--quiet", "--device", "cpu", "--cpu", "1", "-o", self.results + "/o", self.model, targets]
        window = {"HMMJIT_FAULT_SIZE": str(1 << 15)}
        counted = self.path("count")
        done = ok(self.program(search, {"HMMJIT_FAULT": "malloc:0:0", "HMMJIT_FAULT_COUNT": counted, **window}))
        calls = int(read(counted))
        self.assertGreater(calls, 0)
        for call in range(1, calls + 1):
            with self.subTest(call=call):
                self.restore("none")
                done = self.program(search, {"HMMJIT_FAULT": f"malloc:{call}:{errno.ENOMEM}", **window})
                self.assertEqual(done.returncode, RESOURCES, done.stderr)
                self.assertIn(b"out of memory", done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertEqual(self.state(), "none")

    def test_signals_while_names_are_given(self):
        """Either all outputs and success, or no output and death by the signal."""
        for function, before in (("rename", "none"), ("renameat2", "old"), ("unlink", "old"),
                                 ("close", "none"), ("open", "none")):
            self.restore(before)
            calls = self.count(self.search(), function)
            self.assertGreater(calls, 9)
            complete = 0
            for call in range(1, calls + 1):
                with self.subTest(function=function, call=call, before=before):
                    self.restore(before)
                    done = self.program(self.search(),
                                        {"HMMJIT_FAULT": f"{function}:{call}:{-signal.SIGTERM}"})
                    complete += done.returncode == 0
                    self.assertIn(done.returncode, (0, -signal.SIGTERM))
                    self.assertEqual(self.state(), before if done.returncode else "new")
            self.assertGreater(complete, 5 if function != "open" else -1)

    def test_signals_while_a_temporary_has_a_name(self):
        arguments = ["db", "build", "--quiet", "-o", self.results + "/db", self.targets]
        for call in range(1, self.count(arguments, "unlink") + 1):
            with self.subTest(call=call):
                done = self.program(arguments, {"HMMJIT_FAULT": f"unlink:{call}:{-signal.SIGTERM}"})
                self.assertIn(done.returncode, (0, -signal.SIGTERM), done.stderr)
                self.assertEqual(os.listdir(self.results), ["db"])

    def test_what_a_link_leads_to(self):
        """A file whose attributes cannot be read is not new: it is replaced with its mode, or remains."""
        real, link = self.results + "/real", self.results + "/link"
        os.symlink("real", link)
        # Not /dev/null: a defect would replace it for the whole machine.
        arguments = ["search", "--quiet", "--device", "cpu", "--cpu", "1", "--tblout", link,
                     self.model, self.targets]
        for function in ("stat", "lstat", "fstat", "access", "open"):
            self.write(real, OLD)
            for call in range(1, self.count(arguments, function) + 1):
                with self.subTest(function=function, call=call):
                    self.write(real, OLD)
                    os.chmod(real, 0o640)
                    done = self.program(arguments,
                                        {"HMMJIT_FAULT": f"{function}:{call}:{errno.EACCES}"})
                    self.assertEqual(os.stat(real).st_mode & 0o777, 0o640)
                    self.assertEqual(read(real) == OLD, done.returncode != 0, done)
                    self.assertTrue(os.path.islink(link))
                    self.assertEqual(len(os.listdir(self.results)), 2)

    def test_a_file_system_that_cannot_exchange_names(self):
        for before in ("none", "old"):
            self.restore(before)
            done = self.program(self.search(),
                                {"HMMJIT_FAULT": f"renameat2:1:{errno.EINVAL}:always"})
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(self.state(), "new")


if __name__ == "__main__":
    scenario.main()
