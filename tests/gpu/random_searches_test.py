"""The campaign's script without a device: nothing differs where both sides are the CPU, and a device
that loses targets is found, and the search reduced to what shows it.

usage: random_searches_test.py PROGRAM MODELS TARGETS CONTIGS LIBHMMJIT
"""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_searches.py")

# A device that counts one target too few past Viterbi for the models longer than the first model of
# 1025 to 1536 positions, as if that one's kernel served all of them.
WRONG_DEVICE = """#!{python}
import json, re, subprocess, sys
arguments = sys.argv[1:]
done = subprocess.run([{program!r}, *arguments])
if done.returncode or arguments[0] != "search":
    sys.exit(done.returncode)
report, statistics = (arguments[arguments.index(option) + 1] for option in ("-o", "--stats"))
first, lost, out = None, 0, []
for line in open(report):
    query = re.match(r"Query: .*\\[M=(\\d+)\\]", line)
    if query:
        M = int(query[1])
        wrong = first is not None and first < M <= 1536
        if first is None and 1024 < M <= 1536:
            first = M
    passed = re.match(r"(Passed Vit filter: +)(\\d+)( .*)", line)
    if passed and wrong and int(passed[2]) > 0:
        lost += 1
        line = f"{{passed[1]}}{{int(passed[2]) - 1}}{{passed[3]}}\\n"
    out.append(line)
open(report, "w").writelines(out)
counters = json.load(open(statistics))
counters["passed"]["viterbi"] -= lost
json.dump(counters, open(statistics, "w"))
"""

# A device that loses the last row of a table, and warns.
WRONG_TABLE = """#!{python}
import os, subprocess, sys
if "--tblout" not in sys.argv:
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
status = subprocess.run([{program!r}, *sys.argv[1:]]).returncode
path = sys.argv[sys.argv.index("--tblout") + 1]
rows = open(path).read().split("\\n")
last = max((i for i, row in enumerate(rows) if row and row[0] != "#"), default=None)
if last is not None:
    del rows[last]
    sys.stderr.write("hmmjit search: warning: device 3 lost 1 row of /a/b\\n")
open(path, "w").write("\\n".join(rows))
sys.exit(status)
"""
# A package whose sessions leave out a correction.
WRONG_PACKAGE = """
import sys
del sys.modules["hmmjit"]
sys.path.insert(0, {package!r})
import hmmjit
right = hmmjit.Session.search
hmmjit.Session.search = lambda *a, **o: right(*a, **{{**o, "null2": not o.get("null2", True)}})
"""

# An hmmsearch that ends with an error.
BROKEN_ORACLE = """#!{python}
import sys
sys.exit("Fatal exception: no room for {{}}".format(sys.argv[-1]))
"""


class Campaign(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text.format(python=sys.executable, program=program))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def run_script(self, *arguments):
        done = subprocess.run([sys.executable, "-B", SCRIPT, program, "--targets", targets, contigs, "--device", "cpu",
                               "--work", self.folder, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_equal_programs(self):
        log = os.path.join(self.folder, "log")
        status, text = self.run_script("--models", models, "--seed", "100", "--searches", "12", "--workers", "2",
                                       "--core-seconds", "0.002", "--seconds", "600", "--log", log)
        self.assertEqual(status, 0, text)
        with open(log) as file:
            records = [json.loads(line) for line in file]
        self.assertEqual(sorted(r["seed"] for r in records), list(range(100, 112)))
        self.assertGreater(sum(r["passed"]["msv"] for r in records), 0)
        self.assertRegex(text, r"12 searches .* 0 runs differ, 0 searches failed")

    def test_a_device_that_loses_targets_and_an_oracle_that_fails(self):
        arguments = ["--models", models, "--device-program", self.program("wrong_device", WRONG_DEVICE),
                     "--core-seconds", "0.005", "--seconds", "600", "--libraries", "class_1536"]
        keep, log = (os.path.join(self.folder, name) for name in ("kept", "log"))
        status, text = self.run_script(*arguments, "--seed", "8", "--searches", "4", "--workers", "2",
                                       "--reduce-most", "1", "--reduce-seconds", "300", "--keep", keep, "--log", log,
                                       "--oracle", self.program("broken", BROKEN_ORACLE), "--oracle-share", "1",
                                       "--oracle-seconds", "1000")
        self.assertEqual(status, 1, text)
        reduced = [line for line in text.splitlines() if line.startswith("REDUCED seed ")]
        self.assertEqual(len(reduced), 1, text)
        seed, found = reduced[0].removeprefix("REDUCED seed ").split(": ", 1)
        found = json.loads(found)
        self.assertEqual(found["model_count"], 2, text)
        self.assertEqual(found["target_count"], 1, text)
        (_, first), (_, second) = found["models"]
        self.assertTrue(1024 < first < second <= 1536, text)
        self.assertIn("Passed Vit filter", found["difference"])
        self.assertEqual(sorted(os.listdir(keep)), [f"{seed}.models.hmm.gz", f"{seed}.targets.fasta.gz"])
        # An oracle that fails hides no difference.
        with open(log) as file:
            records = {r["seed"]: r for r in map(json.loads, file)}
        self.assertEqual(len(records), 4, text)
        differing = [seed for seed, r in records.items() if r.get("differences")]
        self.assertIn(int(seed), differing, text)
        for record in records.values():
            self.assertNotIn("failure", record)
            self.assertNotIn("oracle", record)
            self.assertIn("no room for", record["oracle_failure"])
            self.assertTrue(record["runs"])
        self.assertRegex(text, r" 0 searches failed, ")
        # Everything once more behind the tables.
        end = text[text.index("hmmsearch failed in 4 others"):]
        for number in records:
            self.assertRegex(end, rf"(?m)^hmmsearch FAILED seed {number}: exit 1: .*no room for")
        for number in differing:
            self.assertRegex(end, rf"(?m)^DIFFERS seed {number}\b.*Passed Vit filter")
        # The seed alone makes the same search again.
        status, text = self.run_script(*arguments, "--only", seed, "--reduce-most", "0")
        self.assertEqual(status, 1, text)
        self.assertIn(f"DIFFERS seed {seed} ", text)

    def test_every_program(self):
        dna = os.path.join(self.folder, "dna")
        with open(contigs) as file, open(dna + ".sto", "w") as alignments:
            bases = file.read().split("\n")[1]
            for i, length in enumerate((40, 150, 400)):
                alignments.write(f"# STOCKHOLM 1.0\n#=GF ID dna{i}\nrow {bases[900 * i:900 * i + length]}\n//\n")
        subprocess.run([program, "build", "--dna", "-o", os.devnull, dna + ".hmm", dna + ".sto"], check=True)
        wrong = os.path.join(self.folder, "package", "hmmjit")
        os.makedirs(wrong)
        with open(os.path.join(wrong, "__init__.py"), "w") as file:
            file.write(WRONG_PACKAGE.format(package=os.path.join(os.path.dirname(SCRIPT), "..", "..", "engine", "api", "python")))
        table = self.program("wrong_table", WRONG_TABLE)
        for name in ("scan", "phmmer", "jackhmmer", "nhmmer", "server", "session"):
            arguments = ["--models", models, dna + ".hmm", "--programs", name, "--seed", "3",
                         "--workers", "1", "--core-seconds", "0.0005", "--shared-library", library, "--reduce-most", "0"]
            for broken, status, searches in ((), 0, "1"), (["--device-program", table] if name != "session" else
                                                           ["--package", os.path.dirname(wrong)], 1, "2"):
                with self.subTest(program=name, broken=broken):
                    got, text = self.run_script(*arguments, *broken, "--searches", searches)
                    self.assertEqual(got, status, text)
                    row = re.search(rf"program: {name} +(\d+) +0 +[\d,]+ +(\d+) +(\d+) ", text)
                    self.assertEqual((row[2] > "0", row[3] > "0"), (status == 1, status == 1 and name != "session"), text)
                    if row[3] > "0":
                        self.assertIn("warned: warning: device # lost # row of #\n", text)


if __name__ == "__main__":
    program, models, targets, contigs, library = (os.path.abspath(path) for path in sys.argv[1:6])
    unittest.main(argv=sys.argv[:1], verbosity=2)
