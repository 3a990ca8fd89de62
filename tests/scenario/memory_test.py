"""`--mem` bounds the largest resident size of the program: input bombs, long targets and many hits.

The bound may be exceeded by a tenth and 24 MiB. A program that keeps everything in memory exceeds it by far.
"""
import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import scenario
from scenario import ok, read, result_lines

INPUT_ERROR, RESOURCES = 3, 5
MIB = 1 << 20
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


# The maximum resident size of a process includes that of its parent at the fork, so a small process starts it.
STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def measured(arguments, stdin=None):
    """Runs the program; returns exit status, standard error and largest resident bytes."""
    done = subprocess.run([sys.executable, "-S", "-c", STARTER, scenario.program] + arguments, stdin=stdin,
                          capture_output=True, text=True)
    status, kilobytes = done.stdout.split()
    return int(status), done.stderr, int(kilobytes) * 1024


class MemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if scenario.hmmsearch_missing() or shutil.which("hmmbuild") is None:
            raise unittest.SkipTest("HMMER is not installed")
        cls.folder = tempfile.mkdtemp(prefix="hmmjit-memory-")
        cls.random = random.Random(20261)
        cls.domain = "".join(cls.random.choices(RESIDUES, k=30))
        scenario.write(cls.path("one.sto"), f"# STOCKHOLM 1.0\nfamily {cls.domain}\n//\n")
        cls.model = cls.path("one.hmm")
        subprocess.run(["hmmbuild", "--amino", cls.model, cls.path("one.sto")], check=True,
                       stdout=subprocess.DEVNULL)
        cls.copies = [cls.copy() for _ in range(50_000)]
        # The memory of the program and its threads without targets, sanitizers included.
        cls.few = cls.path("few.fasta")
        scenario.write_fasta(cls.few, [["few", "", cls.domain]])
        status, errors, cls.least = measured(
            ["search", "--quiet", "--cpu", "2", "--mem", "1M", cls.model, cls.few])
        assert status == 0, errors
        if cls.least > 40 * MIB:
            raise unittest.SkipTest(f"the program alone takes {cls.least // MIB} MiB "
                                    "(a sanitizer's shadow memory?)")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def copy(cls, changes=3):
        """The domain with some residues changed."""
        copy = list(cls.domain)
        for _ in range(changes):
            copy[cls.random.randrange(len(copy))] = cls.random.choice(RESIDUES)
        return "".join(copy)

    def search(self, memory, more, stdin=None, command="search"):
        """With `--mem` in MiB, which must hold."""
        device = [] if command == "scan" else ["--device", "cpu"]
        status, errors, peak = measured([command, "--quiet", *device, "--cpu", "2", "--mem", f"{memory}M"] + more,
                                        stdin)
        bound = memory * MIB + memory * MIB // 10 + 24 * MIB
        self.assertLess(peak, bound, f"{peak / MIB:.1f} MiB with --mem {memory}M; {errors}")
        return status, errors

    def bomb(self, name, head, size, tail=b""):
        """A gzip file of `head`, `size` MiB of the letter A and `tail`."""
        member = gzip.compress(b"A" * MIB, 1)
        with open(self.path(name), "wb") as file:
            file.write(gzip.compress(head))
            for _ in range(size):
                file.write(member)
            file.write(gzip.compress(tail))
        return self.path(name)

    def test_a_line_of_a_model_file(self):
        text = read(self.model)
        at = text.index(b"NAME") + len(b"NAME  ")
        models = self.bomb("long_name.hmm.gz", text[:at], 300, text[at:])
        status, errors = self.search(30, [models, self.few])
        self.assertEqual(status, INPUT_ERROR, errors)
        self.assertIn("long_name.hmm.gz:2: a line of more than 4194304 bytes", errors)

    def test_a_target_of_more_residues_than_any_may_have(self):
        targets = self.bomb("beyond.fasta.gz", b">beyond all limits\n", 2049)
        status, errors = self.search(100, [self.model, targets])
        self.assertEqual(status, INPUT_ERROR, errors)
        self.assertIn("sequence beyond has more than 2147483644 residues", errors)

    def test_a_target_that_does_not_fit(self):
        targets = self.bomb("large.fasta.gz", b">large words\n", 100, b"\n>next\nACDEF\n")
        status, errors = self.search(30, [self.model, targets])
        self.assertEqual(status, RESOURCES, errors)
        self.assertIn(f"sequence large has {100 * MIB} residues, more than there is memory for; "
                      "raise --mem", errors)

    def test_a_long_target(self):
        noise = "".join(self.random.choices(RESIDUES, k=100_000))
        pieces = []
        for number in range(40):
            pieces += [noise[number:], self.copy()]
        residues = "".join(pieces)
        self.assertGreater(len(residues), 3_900_000)
        targets = self.path("long.fasta")
        scenario.write_fasta(targets, [["long", "", residues], ["next", "", self.domain]])
        table = self.path("long.domains")
        status, errors = self.search(30, ["--domtblout", table, "-o", self.path("long.out"),
                                          self.model, targets])
        self.assertEqual(status, 0, errors)
        rows = [line.split() for line in result_lines(read(table)) if line]
        starts = [int(row[17]) for row in rows if row[0] == "long"]
        want = [len("".join(pieces[:2 * number + 1])) + 1 for number in range(40)]
        found = sum(any(abs(start - at) < 10 for start in starts) for at in want)
        self.assertGreater(found, 35, starts)

    def test_a_page_of_many_targets(self):
        """`report` needs little more memory for a target than its data on the page."""
        few, many, page = self.path("few.json"), self.path("many.json"), self.path("many.html")
        status, errors, _ = measured(["search", "--quiet", "-o", "/dev/null", "--json", few, self.model, self.few])
        self.assertEqual(status, 0, errors)
        count, peaks = 60_000, []
        noise = "".join(self.random.choices(RESIDUES, k=count + 60))
        for targets in (1, count):
            with open(few) as file, open(many, "w") as out:
                for line in file:
                    record = json.loads(line)
                    if record["record"] != "target":
                        out.write(line)
                        continue
                    alignment = record["domains"][0]["alignment"]
                    width = len(alignment["target"])
                    for number in range(targets):
                        record.update(name=f"target{number}", index=number, description=noise[number:number + 20])
                        alignment.update(target=noise[number:number + width])
                        out.write(json.dumps(record, separators=(",", ":")) + "\n")
            status, errors, peak = measured(["report", many, "-o", page])
            self.assertEqual(status, 0, errors)
            peaks.append(peak)
        self.assertGreater(os.path.getsize(page), 10 * count)  # the page contains the data, compressed
        print(f"{count} targets: {(peaks[1] - peaks[0]) / count:.0f} bytes each, {os.path.getsize(many) / count:.0f} in "
              f"JSON, {os.path.getsize(page) / count:.0f} on the page")
        self.assertLess(peaks[1] - peaks[0], 1000 * count)

    def results(self, name, folder):
        """Moves the reproducible lines of an output to `folder`; returns their number."""
        kept = os.path.join(folder, name)
        with open(kept, "wb") as file:
            subprocess.run(["grep", "-avE", '^(#$|#[^=]|DATE )|"record":"run"', self.path(name)], stdout=file,
                           env={"LC_ALL": "C", "PATH": os.environ["PATH"]})
        os.unlink(self.path(name))
        return int(subprocess.run(["wc", "-l", kept], stdout=subprocess.PIPE, check=True).stdout.split()[0])

    def compare(self, command, inputs, outputs, more, lines=4_500, appear=()):
        """Compares the outputs of a bounded and an unbounded run and returns the folder of the latter. `appear`:
        outputs whose names are not in options."""
        folders = [self.path(name) for name in ("bounded", "unbounded")]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            arguments = []
            for option, name in outputs.items():
                arguments += [option, self.path(name)]
            arguments += more + inputs
            if folder == folders[0]:
                status, errors = self.search(30, arguments, command=command)
            else:
                status, errors, peak = measured([command, "--cpu", "2", "--mem", "4G", "--quiet"] + arguments)
                self.assertGreater(peak, 60 * MIB)  # or the bound would not matter
            self.assertEqual(status, 0, errors)
            for name in [*outputs.values(), *appear]:
                self.assertGreater(self.results(name, folder), 20 if name.endswith(".hmm") else lines, name)
        for name in [*outputs.values(), *appear]:
            compared = scenario.run(["cmp", *(os.path.join(folder, name) for folder in folders)])
            self.assertEqual((compared.returncode, compared.stdout, compared.stderr), (0, b"", b""), name)
        return folders[1]

    def test_many_hits(self):
        targets = self.path("many.fasta")
        scenario.write_fasta(targets, [[f"t{number}", "a near copy", self.copies[number]] for number in range(30_000)])
        outputs = {option: "hits" + option.strip("-") for option in
                   ("-o", "-A", "--tblout", "--domtblout", "--pfamtblout", "--tsv", "--json", "--a3m",
                    "--gff", "--bed", "--fasta", "--domfasta")}
        folder = self.compare("search", [self.model, targets], outputs, ["--seq-limit", "25000"])
        with open(os.path.join(folder, "hitsa3m"), "rb") as file:
            names = sum(line.startswith(b">t") for line in file)  # one domain each
        self.assertEqual(names, 25_000)

    def test_outputs_by_target(self):
        """Hits are stored until all models are finished, then written target by target. The bound is far below the size
        of all hits."""
        targets = self.path("by_target.fasta")
        scenario.write_fasta(targets, ([f"t{number}", "a near copy", self.copies[number]] for number in range(17_500)))
        models = self.path("three.hmm")
        with open(models, "w") as file:
            for name in ("first", "second", "third"):
                file.write("".join(f"NAME  {name}\n" if line.startswith("NAME") else line
                                   for line in read(self.model).decode().splitlines(True)))
        sets = [[models, ["--gff", "--bed", "--fasta", "--domfasta"], []],
                [models, ["--tblout", "--domtblout"], ["--as", "hmmscan"]]]
        for models, options, more in sets:
            with self.subTest(options=options):
                seen = []
                for memory in (10, 4096):
                    arguments = ["-o", "/dev/null", "--noali", *more]
                    for option in options:
                        arguments += [option, self.path("by_target" + option)]
                    status, errors = self.search(memory, arguments + [models, targets])
                    self.assertEqual(status, 0, errors)
                    seen.append([])
                    for option in options:
                        with open(self.path("by_target" + option), "rb") as file:
                            lines = (line for line in file if not line.startswith((b"# ", b"#\n")))
                            digest, count = hashlib.sha256(), 0
                            for line in lines:
                                digest.update(line)
                                count += 1
                        self.assertGreater(count, 32_500, option)
                        seen[-1].append((option, count, digest.hexdigest()))
                self.assertEqual(*seen)

    def test_domains_that_are_sorted_on_disk(self):
        """Open files and buffers are few for any memory bound."""
        targets, tables = self.path("sorted.fasta"), []
        scenario.write_fasta(targets, [[f"t{number}", "", copy] for number, copy in enumerate(self.copies)])
        for memory in ("4G", "1M"):
            table = self.path(f"domains_{memory}")
            ok(subprocess.run([scenario.program, "search", "--quiet", "--device", "cpu", "--cpu", "2", "--mem", memory,
                               "-o", "/dev/null", "--pfamtblout", table, self.model, targets],
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
                              capture_output=True, text=True))
            tables.append(result_lines(read(table)))
        self.assertGreater(len(tables[0]), 100_000)
        self.assertEqual(scenario.first_difference(*tables) if tables[0] != tables[1] else "", "")

    def test_many_hits_of_rounds(self):
        query, targets = self.path("query.fasta"), self.path("copies.fasta")
        other = "".join(self.random.choices(RESIDUES, k=50))
        scenario.write_fasta(query, [["first", "a domain", self.domain + other], ["second", "", other]])
        # Repeated names are numbered in alignments; some targets have two domains.
        scenario.write_fasta(targets, [
            [f"t{number if number % 40 else 7}", "a copy" if number % 3 else "",
             self.copy(6) + other + (self.copy(2) + other if number % 11 == 0 else "")]
            for number in range(5_500)])
        outputs = {option: "rounds" + option.strip("-") for option in
                   ("-o", "-A", "--tblout", "--domtblout", "--tsv", "--json", "--a3m")}
        checkpoints = ["--chkhmm", self.path("m"), "--chkali", self.path("a")]
        for more, appear in ((["-N", "1", "--seq-limit", "4500"], []),
                             (["-N", "2"] + checkpoints, ["m-1.hmm", "m-2.hmm", "a-1.sto", "a-2.sto"])):
            with self.subTest(options=more):
                self.compare("jackhmmer", [query, targets], outputs, more, appear=appear)
        # Rounds whose alignment is only the query.
        self.compare("jackhmmer", [query, targets], {"-o": "none", "--tsv": "none.tsv", "--json": "none.json"},
                     ["-N", "2", "--incE", "1e-200", "--incdomE", "1e-200"])

    def test_many_hits_of_scanned_sequences(self):
        sequences, models = self.path("scanned.fasta"), self.path("several.hmm")
        scenario.write_fasta(sequences, [[f"s{number}", "a copy", self.copy(number % 9)]
                                         for number in range(18_000)])
        # A weaker model with a long name: it determines column widths if it is a candidate only because few models have
        # been searched, and other models are reported.
        scenario.write(self.path("less.sto"), f"# STOCKHOLM 1.0\nfamily {self.domain[:27]}\n//\n")
        less = self.path("less.hmm")
        subprocess.run(["hmmbuild", "--amino", less, self.path("less.sto")], check=True, stdout=subprocess.DEVNULL)
        with open(models, "w") as file:
            for name, model in (("a_with_a_name_of_many_letters", less), ("b", self.model), ("c", self.model)):
                file.write("".join(f"NAME  {name}\n" if line.startswith("NAME") else line
                                   for line in read(model).decode().splitlines(True)))
        outputs = {option: "scan" + option.strip("-") for option in
                   ("-o", "--tblout", "--domtblout", "--pfamtblout")}
        for more in (["-E", "1e-20", "--domE", "1e-19"], ["-T", "60", "--domT", "61"]):
            with self.subTest(options=more):
                self.compare("scan", [models, sequences], outputs, more)


class ControlGroup:
    """A control group with a memory limit within our own group."""

    def __init__(self, limit):
        self.folder = None
        with open("/proc/self/cgroup") as file:
            memberships = [line.rstrip("\n").split(":", 2) for line in file]
        mount = "/sys/fs/cgroup"
        for _, controllers, path in memberships:
            if "memory" in controllers.split(","):
                parent, files = f"{mount}/{controllers}{path}", {"memory.limit_in_bytes": limit,
                                                                 "memory.swappiness": 0}
            elif controllers == "":
                parent, files = mount + path, {"memory.max": limit, "memory.swap.max": 0}
            else:
                continue
            folder = os.path.join(parent, f"hmmjit-test-{os.getpid()}")
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.folder = folder
            try:
                for name, value in files.items():
                    with open(os.path.join(folder, name), "w") as file:
                        file.write(str(value))
                self.run([shutil.which("true")])
                return
            except OSError:  # the controller is not enabled for subgroups
                self.remove()
        raise unittest.SkipTest("no control group with a memory limit can be made here")

    def run(self, command):
        def join():
            with open(os.path.join(self.folder, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))
        return subprocess.run(command, preexec_fn=join, capture_output=True, text=True, timeout=300)

    def remove(self):
        for _ in range(100):
            try:
                os.rmdir(self.folder)
                return
            except OSError:  # the last process has not left it yet
                time.sleep(0.05)


@unittest.skipIf(scenario.hmmsearch_missing() or shutil.which("hmmbuild") is None,
                 "HMMER is not installed")
class ControlGroupTest(unittest.TestCase):
    """The kernel kills a process that exceeds its group's limit; hmmjit must never let it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="hmmjit-group-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        generator = random.Random(20262)
        cls.models, cls.targets = (os.path.join(cls.folder, name) for name in ("m.hmm", "t.fasta"))
        targets = []
        with open(cls.models, "w") as models:
            for number, length in enumerate((80, 300, 700)):
                sequence = "".join(generator.choices(RESIDUES, k=length))
                alignment = os.path.join(cls.folder, "one.sto")
                scenario.write(alignment, f"# STOCKHOLM 1.0\nfamily{number} {sequence}\n//\n")
                model = os.path.join(cls.folder, "one.hmm")
                subprocess.run(["hmmbuild", "--amino", "-n", f"family{number}", model, alignment],
                               check=True, stdout=subprocess.DEVNULL)
                models.write(read(model).decode())
                for copy in range(200):
                    changed = [generator.choice(RESIDUES) if generator.random() < 0.3 else residue
                               for residue in sequence]
                    targets.append([f"t{number}_{copy}", "a copy", "".join(changed)])
        scenario.write_fasta(cls.targets, targets)

    def search(self, limit, options):
        group = ControlGroup(limit * MIB)
        try:
            output = os.path.join(self.folder, "out.tbl")
            if os.path.exists(output):
                os.unlink(output)
            done = group.run([scenario.program, "search", "--quiet", "--device", "cpu", *options,
                              "--tblout", output, "-o", os.path.join(self.folder, "out"),
                              "-A", os.path.join(self.folder, "out.sto"), self.models, self.targets])
        finally:
            group.remove()
        self.assertIn(done.returncode, (0, RESOURCES), (limit, options, done.stderr))
        return done, read(output) if os.path.exists(output) else None

    def test_no_search_is_ended_by_the_kernel(self):
        unlimited = os.path.join(self.folder, "unlimited.tbl")
        subprocess.run([scenario.program, "search", "--quiet", "--device", "cpu", "--tblout", unlimited,
                        self.models, self.targets], check=True, stdout=subprocess.DEVNULL)
        for limit, options in ((64, ["--cpu", "2"]), (64, ["--cpu", "2", "--mem", "4G"]),
                               (64, ["--cpu", "64"]), (32, ["--cpu", "64", "--mem", "4G"])):
            with self.subTest(limit=limit, options=options):
                done, table = self.search(limit, options)
                if limit == 64:
                    self.assertEqual(done.returncode, 0, done.stderr)
                if done.returncode == 0:
                    self.assertEqual(result_lines(table), result_lines(read(unlimited)))
                else:
                    self.assertEqual(done.stderr.count("\n"), 1 + done.stderr.count("threads are used"))
                    self.assertIsNone(table)

    def test_a_group_that_is_too_small_for_anything(self):
        done, table = self.search(16, ["--cpu", "2"])
        self.assertEqual(done.returncode, RESOURCES)
        self.assertIn("the control group of this process has", done.stderr)
        self.assertIn("raise the memory limit of the job, container or control group", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIsNone(table)


if __name__ == "__main__":
    scenario.main()
