"""A lost standard error never matters; a lost standard output always does."""
import os
import pty
import subprocess
import time
import unittest

import scenario
from scenario import ScratchFolder, example_model, read

USAGE_ERROR, INPUT_ERROR, OUTPUT_ERROR = 2, 3, 7


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
class StandardError(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = example_model("globins4.hmm", self.folder)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, [["t", "", "ACDEFGHIKLMNPQRSTVWY" * 20]])

    def shell(self, text):
        return scenario.run(["/bin/sh", "-c", text, scenario.program, self.model, self.targets],
                            timeout=60)

    def test_errors_keep_their_status(self):
        for stderr in ("2>&-", "2>/dev/full", "2>&- >&-"):
            for arguments, status in [("search $1 nosuch", INPUT_ERROR), ("search", USAGE_ERROR),
                                      ("search --nosuch $1 $2", USAGE_ERROR), ("", USAGE_ERROR),
                                      ("nosuch", USAGE_ERROR), ("report nosuch", INPUT_ERROR),
                                      ("db info nosuch", INPUT_ERROR),
                                      ("plan --model nosuch", INPUT_ERROR),
                                      ("cache show nosuch", None), ("bench", None)]:
                with self.subTest(stderr=stderr, arguments=arguments):
                    done = self.shell(f'"$0" {arguments} {stderr}')
                    with_stderr = self.shell(f'"$0" {arguments}')
                    self.assertEqual(done.returncode, with_stderr.returncode)
                    if status is not None:
                        self.assertEqual(done.returncode, status)

    def test_searches_succeed_without_it(self):
        for stderr in ("2>&-", "2>/dev/full"):
            table = self.path("t")
            done = self.shell(f'"$0" search --verbose --tblout {table} $1 $2 {stderr}')
            self.assertEqual(done.returncode, 0)
            text = read(table)
            self.assertTrue(text.endswith(b"# [ok]\n"))
            # Nothing meant for standard error got into a file that took its number.
            self.assertNotIn(b"core-seconds", text)
            os.unlink(table)

    def test_closed_standard_output_is_no_other_file(self):
        table = self.path("t")
        done = self.shell(f'"$0" search --quiet --tblout {table} $1 $2 >&-')
        self.assertEqual(done.returncode, OUTPUT_ERROR, done.stderr)
        self.assertFalse(os.path.exists(table))

    def test_progress_outlives_its_terminal(self):
        ours, theirs = pty.openpty()
        table = self.path("t")
        process = subprocess.Popen(
            [scenario.program, "search", "--device", "cpu", "-o", "/dev/null", "--tblout", table,
             self.model, "-"], stdin=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        # Input is taken a MiB at a time: two of them bring the search past its start.
        process.stdin.write(read(self.targets) * 6000)
        process.stdin.flush()
        self.assertIn(b"hmmjit", os.read(ours, 1000))
        os.close(ours)
        time.sleep(1.2)  # two lines of progress that nobody reads
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertTrue(read(table).endswith(b"# [ok]\n"))

    def test_help_on_a_full_disk(self):
        for arguments in ("search -h", "-h", "--version", "plan -h", "man --markdown"):
            with self.subTest(arguments=arguments):
                done = self.shell(f'"$0" {arguments} >/dev/full')
                self.assertEqual(done.returncode, OUTPUT_ERROR, done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                self.assertEqual(self.shell(f'"$0" {arguments} >/dev/null').returncode, 0)


if __name__ == "__main__":
    scenario.main()
