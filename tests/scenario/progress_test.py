"""Progress on a terminal begins before the data, and the search survives its terminal."""
import os
import pty
import subprocess
import time
import unittest

import scenario
from scenario import ScratchFolder, example_model, read


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
class Terminal(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = example_model("globins4.hmm", self.folder)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, [["t", "", "ACDEFGHIKLMNPQRSTVWY" * 20]])
        self.table = self.path("t.tbl")

    def start(self, models, targets):
        """The search, and our end of its terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([scenario.program, "search", "--device", "cpu", "-o", "/dev/null", "--tblout", self.table,
                                    models, targets], stdin=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        return process, ours

    def check_end(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertTrue(read(self.table).endswith(b"# [ok]\n"))
        os.unlink(self.table)

    def test_outputs_and_progress_come_before_the_data(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for models, targets in ((self.model, "-"), ("-", self.targets), (self.model, fifo)):
            process, terminal = self.start(models, targets)
            source = os.open(fifo, os.O_WRONLY) if targets == fifo else process.stdin.fileno()
            self.assertIn(b"0 models done", os.read(terminal, 1000))
            self.assertTrue(any(".tmp-" in name for name in os.listdir(self.folder)))
            data = read(self.model if models == "-" else self.targets)
            while data:
                data = data[os.write(source, data):]
            if targets == fifo:
                os.close(source)
            self.check_end(process)
            os.close(terminal)

    def test_progress_outlives_its_terminal(self):
        process, terminal = self.start(self.model, "-")
        # The search reads 1 MiB at a time: with two of them it has started.
        process.stdin.write(read(self.targets) * 6000)
        process.stdin.flush()
        self.assertIn(b"hmmjit", os.read(terminal, 1000))
        os.close(terminal)
        time.sleep(1.2)  # two more lines of progress
        self.check_end(process)


if __name__ == "__main__":
    scenario.main()
