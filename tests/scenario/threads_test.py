"""Too few threads: the search makes do with those it gets, or ends with one clear line."""
import gzip
import os
import shutil
import unittest

import scenario
from scenario import ScratchFolder, example_model, read, result_lines

NOBODY = "65534"


@unittest.skipUnless(os.path.isdir(scenario.EXAMPLES), "hmmer-examples not installed")
@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and shutil.which("prlimit"),
                     "needs root, setpriv and prlimit: root's own threads are not limited")
class FewThreads(ScratchFolder):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.model = example_model("fn3.hmm", self.folder)
        self.targets = self.path("targets.fasta.gz")
        scenario.write_fasta(self.path("t"), [[f"t{n}", "", "ACDEFGHIKLMNPQRSTVWY" * 20]
                                              for n in range(5000)])
        with gzip.open(self.targets, "wb", compresslevel=1) as file:
            file.write(read(self.path("t")))
        if self.limited(10, ["--version"]).returncode != 0:
            self.skipTest("another user may not run the program here")

    def limited(self, count, arguments):
        return scenario.run(["setpriv", "--reuid=" + NOBODY, "--clear-groups", "prlimit",
                             f"--nproc={count}", scenario.program] + arguments, timeout=120)

    def test_searches_with_what_it_gets(self):
        want = result_lines(scenario.search(["--noali", self.model, self.targets]).stdout)
        for count, cpu in ((1, 1), (1, 2), (2, 2), (4, 16), (6, 64)):
            for device in ([], ["--device", "cpu"]):
                with self.subTest(processes=count, cpu=cpu, device=device):
                    done = self.limited(count, ["search", "--noali", "--cpu", str(cpu)] + device +
                                        [self.model, self.targets])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    lines = result_lines(done.stdout)
                    self.assertEqual([line for line in lines if "time" not in line],
                                     [line for line in want if "time" not in line])
                    warnings = done.stderr.decode().splitlines()
                    # Threads are started when there is a task for them: of many, perhaps none is refused.
                    self.assertLessEqual(len(warnings), int(cpu > 1), warnings)
                    if count < cpu == 2:
                        self.assertEqual(len(warnings), 1)
                    if warnings:
                        self.assertIn("threads could be started", warnings[0])

    def test_enough_threads_warn_of_nothing(self):
        done = self.limited(12, ["search", "--cpu", "4", "--device", "cpu", "-o", "/dev/null",
                                 self.model, self.targets])
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_database_is_built_with_what_it_gets(self):
        place = self.path("place")
        os.mkdir(place)
        os.chmod(place, 0o777)
        files = []
        for name, count in (("one", 1), ("many", 12)):
            file = f"{place}/{name}.hjdb"
            done = self.limited(count, ["db", "build", "--quiet", "--cpu", "4", "-o", file, self.targets])
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            files.append(read(file))
        self.assertEqual(files[0], files[1])


if __name__ == "__main__":
    scenario.main()
