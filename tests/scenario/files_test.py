"""Outputs that would be lost, odd output names, and inputs that are long in coming."""
import os
import subprocess
import time
import unittest

import scenario
from scenario import ScratchFolder, example_model, hmmsearch, read, result_lines, search

USAGE_ERROR, INPUT_ERROR, OUTPUT_ERROR = 2, 3, 7


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
class Files(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.model = self.path("m.hmm")
        with open(self.model, "wb") as file:
            file.write(read(example_model("globins4.hmm", self.folder)))
        globins = scenario.fasta_records(
            read(os.path.join(scenario.EXAMPLES, "tutorial/globins45.fa")).decode())
        self.targets = self.path("t.fasta")
        scenario.write_fasta(self.targets, globins)

    def refused(self, options, words):
        before = {name: read(self.path(name)) for name in os.listdir(self.folder)}
        done = search(options + [self.model, self.targets])
        self.assertEqual(done.returncode, USAGE_ERROR, (options, done.stderr))
        self.assertIn(words.encode(), done.stderr.split(b"\n")[0])
        self.assertEqual(done.stdout, b"")
        self.assertEqual({name: read(self.path(name)) for name in os.listdir(self.folder)}, before)

    def test_empty_names(self):
        for options in (["--tblout="], ["--tblout", ""], ["-o", ""], ["-A", ""], ["--stats="],
                        ["--json", ""], ["--trace="]):
            self.refused(options, "empty")

    def test_two_outputs_in_one_file(self):
        a, link = self.path("a"), self.path("link")
        os.symlink("a", link)
        for first, second in ((a, a), (a, self.path("./a")), (a, link)):
            for options in (["-o", first, "--tblout", second], ["--tblout", first, "-A", second],
                            ["--stats", first, "--json", second], ["--tsv", first, "--a3m", second]):
                os.path.islink(link) and os.unlink(link)
                if link in options:
                    open(a, "w").close()
                    os.symlink("a", link)
                self.refused(options, "the same file")
                os.path.exists(a) and os.unlink(a)

    def test_an_output_that_is_an_input(self):
        hard = self.path("hard.fasta")
        os.link(self.targets, hard)
        for options in (["-o", self.model], ["--tblout", self.targets], ["--tblout", hard],
                        ["-A", os.path.join(self.folder, ".", "t.fasta")]):
            self.refused(options, "file")
        with open(self.targets, "rb") as stdin:
            done = search(["-o", self.targets, self.model, "-"], stdin=stdin)
        self.assertEqual(done.returncode, USAGE_ERROR)
        done = scenario.run([scenario.program, "db", "build", "-o", self.targets, self.targets])
        self.assertEqual(done.returncode, USAGE_ERROR, done.stderr)

    def test_devices_and_pipes_may_be_named_twice(self):
        done = search(["-o", "/dev/null", "--tblout", "/dev/null", "-A", "/dev/null", self.model,
                       self.targets])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        done = search(["--tblout", "/dev/stdout", "--domtblout", "/dev/stdout", self.model,
                       self.targets])
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_odd_places(self):
        long_name = self.path("n" * 255)
        os.symlink("real", self.path("link"))
        done = search(["-o", "/dev/null", "--tblout", long_name, "--domtblout", self.path("link"),
                       self.model, self.targets])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(read(long_name).endswith(b"# [ok]\n"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertTrue(read(self.path("real")).endswith(b"# [ok]\n"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a link for another user")
    def test_a_link_of_another_user_in_a_shared_folder(self):
        """As the kernel where fs.protected_symlinks is on, and also where it is off."""
        shared = self.path("shared")
        os.mkdir(shared)
        os.chmod(self.folder, 0o755)
        os.chmod(shared, 0o1777)
        mine = self.path("mine")
        for target in (mine, self.path("new")):
            with open(mine, "w") as file:
                file.write("old")
            os.chmod(mine, 0o400)
            link = os.path.join(shared, "out.tbl")
            os.path.lexists(link) and os.unlink(link)
            os.symlink(target, link)
            os.lchown(link, 65534, 65534)
            done = search(["--tblout", link, self.model, self.targets])
            self.assertEqual(done.returncode, OUTPUT_ERROR, done.stderr)
            self.assertIn(link.encode(), done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertEqual(read(mine), b"old")
            self.assertFalse(os.path.exists(self.path("new")))
            self.assertEqual(os.listdir(shared), ["out.tbl"])
        os.lchown(link, 0, 0)  # of the user's own
        self.assertEqual(search(["--tblout", link, self.model, self.targets]).returncode, 0)
        self.assertTrue(read(self.path("new")).endswith(b"# [ok]\n"))

    def test_permissions_are_kept_and_set_id_bits_are_not(self):
        table, link = self.path("t.tbl"), self.path("link")
        for mode, want in ((0o640, 0o640), (0o6755, 0o755), (0o600, 0o600)):
            open(table, "w").close()
            os.chmod(table, mode)
            os.path.lexists(link) or os.symlink("t.tbl", link)
            done = search(["--tblout", link, self.model, self.targets])
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(os.stat(table).st_mode & 0o7777, want)
            self.assertTrue(read(table).endswith(b"# [ok]\n"))

    def test_an_open_descriptor_that_is_an_input(self):
        before = read(self.targets)
        for name in ("/dev/fd/{}", "/proc/self/fd/{}"):
            with open(self.targets, "rb+") as file:
                number = file.fileno()
                done = subprocess.run(
                    [scenario.program, "search", "--quiet", "--tblout", name.format(number),
                     self.model, self.targets], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    pass_fds=[number])
            self.assertEqual(done.returncode, USAGE_ERROR, done.stderr)
            self.assertIn(b"this is the sequence file", done.stderr)
            self.assertEqual(read(self.targets), before)

    def test_outputs_and_progress_come_before_the_data(self):
        import pty
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for models, targets in ((self.model, "-"), ("-", self.targets), (self.model, fifo)):
            ours, theirs = pty.openpty()
            table = self.path("t.tbl")
            process = subprocess.Popen(
                [scenario.program, "search", "--device", "cpu", "-o", "/dev/null", "--tblout",
                 table, models, targets], stdin=subprocess.PIPE, stderr=theirs)
            os.close(theirs)
            source = os.open(fifo, os.O_WRONLY) if targets == fifo else None
            self.assertIn(b"0 models done", os.read(ours, 1000))
            self.assertTrue(any(".tmp-" in name for name in os.listdir(self.folder)))
            data = read(self.model if models == "-" else self.targets)
            if source is not None:
                os.write(source, data)
                os.close(source)
            else:
                process.stdin.write(data)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)
            os.close(ours)
            self.assertTrue(read(table).endswith(b"# [ok]\n"))
            os.unlink(table)

    def test_nul_in_a_header(self):
        path = self.path("nul.fasta")
        with open(path, "wb") as file:
            file.write(b">first\nACDEF\n>se\0cond some\nACDEF\n")
        done = search(["--tblout", self.path("x"), self.model, path])
        self.assertEqual(done.returncode, INPUT_ERROR)
        self.assertIn(b"nul.fasta:3: NUL byte in the header of record se;", done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_memory_without_a_unit(self):
        self.refused(["--mem", "64"], "64 bytes; write a unit")

    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch not installed")
    def test_hmmpgmd(self):
        path = self.path("targets.hmmpgmd")
        with open(path, "wb") as file:
            file.write(b"#45 45 45\n" + read(self.targets))
        got = search(["--tformat", "hmmpgmd", "--noali", self.model, path])
        want = hmmsearch(["--tformat", "hmmpgmd", "--noali", self.model, path])
        self.assertEqual((got.returncode, want.returncode), (0, 0), got.stderr)
        self.assertEqual(result_lines(want.stdout), result_lines(got.stdout))
        self.assertIn(">> ", got.stdout.decode())


if __name__ == "__main__":
    scenario.main()
