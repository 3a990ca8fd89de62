"""`--mem` bounds the largest resident size of the program: input bombs, long targets and many hits.

The bound may be exceeded by a tenth and 24 MiB. A program that keeps everything in memory exceeds it by far. HMMJIT_TEST_ALL:
a million hits and a target of 50 million residues, which take minutes and 4 GB in $TMPDIR, also in a small control group.
"""
import gzip
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
import unittest

import scenario
from scenario import SharedInputs, ok, read, result_lines

INPUT_ERROR, RESOURCES = 3, 5
MIB = 1 << 20
ALL = "HMMJIT_TEST_ALL" in os.environ
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


# The maximum resident size of a process includes that of its parent at the fork, so a small process starts it.
STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime + usage.ru_stime)
"""


def measured(arguments, prefix=(), stdin=None):
    """Runs the program; returns exit status, standard error and largest resident bytes."""
    done = subprocess.run([sys.executable, "-S", "-c", STARTER, *prefix, scenario.program] + arguments, stdin=stdin,
                          capture_output=True, text=True)
    status, kilobytes, seconds = done.stdout.split()
    print(f"{' '.join(arguments[:8])} ...: status {status}, {int(kilobytes) // 1024} MiB, {float(seconds):.1f} s of processors")
    return int(status), done.stderr, int(kilobytes) * 1024


@unittest.skipIf(scenario.hmmsearch_missing() or shutil.which("hmmbuild") is None, "HMMER is not installed")
class MemoryTest(SharedInputs):
    def make_inputs(self):
        self.random = random.Random(20261)
        self.domain = "".join(self.random.choices(RESIDUES, k=30))
        self.model = self.path("one.hmm")
        ok(scenario.run(["hmmbuild", "--amino", self.model,
                         self.write("one.sto", f"# STOCKHOLM 1.0\nfamily {self.domain}\n//\n")]))
        self.copies = [self.copy() for _ in range(50_000)]
        # The memory of the program and its threads without targets, sanitizers included.
        self.few = self.path("few.fasta")
        scenario.write_fasta(self.few, [["few", "", self.domain]])
        status, errors, least = measured(["search", "--quiet", "--cpu", "2", "--mem", "1M", self.model, self.few])
        assert status == 0, errors
        if least > 40 * MIB:
            raise unittest.SkipTest(f"the program alone takes {least // MIB} MiB (a sanitizer's shadow memory?)")

    def copy(self, changes=3):
        """The domain with some residues changed."""
        copy = list(self.domain)
        for _ in range(changes):
            copy[self.random.randrange(len(copy))] = self.random.choice(RESIDUES)
        return "".join(copy)

    def search(self, memory, more, command="search", prefix=(), stdin=None):
        """With `--mem` in MiB, which must hold."""
        device = [] if command == "scan" else ["--device", "cpu"]
        status, errors, peak = measured([command, "--quiet", *device, "--cpu", "2", "--mem", f"{memory}M"] + more, prefix,
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
        dna = self.bomb("dna.fasta.gz", b">large\n" + b"ACGT" * 9, 20)
        for command in ("nhmmer", "nhmmscan"):  # with both strands, and the next target
            status, errors = self.search(76, [self.dna_model("ACGT" * 9), dna], command)
            self.assertEqual(status, RESOURCES, errors)

    def dna_model(self, sequence):
        model = self.path("dna.hmm")
        ok(scenario.run(["hmmbuild", "--dna", model, self.write("dna.sto", f"# STOCKHOLM 1.0\nfamily {sequence}\n//\n")]))
        return model

    def test_a_library_of_nucleotides(self):
        """Its models are in memory in passes, also if they are short."""
        library, targets = self.path("library.hmm"), self.path("dna.fasta")
        for residues, models, count in ((100, 500, 1), (6, 1000, 1500)):
            sequence = "".join(self.random.choices("ACGT", k=residues))
            self.write(library, read(self.dna_model(sequence)) * models)
            scenario.write_fasta(targets, [["target", "", sequence * 5]] * count)
            status, errors = self.search(16, ["-o", "/dev/null", library, targets], command="nhmmscan")
            self.assertEqual(status, 0, errors)

    def test_many_targets_with_few_residues(self):
        """Names, descriptions and entries take memory too."""
        targets, database = self.path("names.fasta.gz"), self.path("names.hjdb")
        with gzip.open(targets, "wb", compresslevel=1) as file:
            for text in (b"", b" " + b"word " * 100):
                file.write(b"".join(b">s%d%s\n" % (number, text) for number in range(1_000_000 if not text else 200_000)))
        status, errors, _ = measured(["db", "build", targets, "-o", database])
        self.assertEqual(status, 0, errors)
        for name in (targets, database):
            status, errors = self.search(30, ["-o", "/dev/null", self.model, name])
            self.assertEqual(status, 0, errors)

    def test_a_long_target(self):
        count, memory = (500, 400) if ALL else (40, 30)
        noise = "".join(self.random.choices(RESIDUES, k=100_000))
        pieces = []
        for number in range(count):
            pieces += [noise[number:], self.copy()]
        residues = "".join(pieces)
        self.assertGreater(len(residues), 97_500 * count)
        targets = self.path("long.fasta")
        scenario.write_fasta(targets, [["long", "", residues], ["next", "", self.domain]])
        table = self.path("long.domains")
        status, errors = self.search(memory, ["--domtblout", table, "-o", self.path("long.out"), self.model, targets])
        self.assertEqual(status, 0, errors)
        rows = [line.split() for line in result_lines(read(table)) if line]
        starts = [int(row[17]) for row in rows if row[0] == "long"]
        want = [1 + sum(map(len, pieces[:2 * number + 1])) for number in range(count)]
        found = sum(any(abs(start - at) < 10 for start in starts) for at in want)
        self.assertGreater(found, 0.875 * count, starts)
        if ALL:
            with ControlGroup(64 * MIB) as group:
                status, errors = self.search(memory, ["-o", self.path("none"), self.model, targets], prefix=group.prefix)
            self.assertIn((status, errors.count("\n"), os.path.exists(self.path("none"))), ((0, 0, True), (RESOURCES, 1, False)), errors)

    def test_a_long_target_of_a_pipe_for_several_passes(self):
        """The copy on disk is written and read in pieces."""
        queries, targets, statistics = self.path("queries.fasta"), self.path("piped.fasta"), self.path("piped.json")
        scenario.write_fasta(queries, [[f"q{number}", "", "".join(self.random.choices(RESIDUES, k=60))]
                                       for number in range(60)])
        scenario.write_fasta(targets, [["long", "", "".join(self.random.choices(RESIDUES, k=99_991)) * 190]])
        with subprocess.Popen(["cat", targets], stdout=subprocess.PIPE) as piped:
            status, errors = self.search(40, ["-o", "/dev/null", "--noali", "--stats", statistics, queries, "-"],
                                         "phmmer", stdin=piped.stdout)
        self.assertEqual(status, 0, errors)
        self.assertEqual(json.loads(read(statistics))["targets_spooled"], 1)

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

    def test_an_alignment(self):
        """`align` keeps the rows in memory, but neither their text nor a second copy."""
        targets, output = self.path("wide.fasta"), self.path("wide.ali")
        noise = "".join(self.random.choices(RESIDUES, k=30_000))
        scenario.write_fasta(targets, [["wide", "", noise + self.domain]] + [["one", "", self.copies[0]]] * 1500)
        rows = 2 * 1500 * len(noise)  # residues and posteriors
        for name in ("stockholm", "psiblast"):
            status, errors, peak = measured(["align", "--cpu", "1", "--outformat", name, "-o", output, self.model, targets])
            self.assertEqual(status, 0, errors)
            self.assertGreater(os.path.getsize(output), rows // 2)
            self.assertLess(peak, 1.2 * rows + 24 * MIB)

    def results(self, names):
        """Number and digest of the reproducible lines of each output, which is removed."""
        found = {}
        for name in names:
            digest, count = hashlib.sha256(), 0
            with open(self.path(name), "rb") as file:
                for line in file:
                    if not line.startswith((b"# ", b"#\n", b"DATE ", b'{"record":"run"')):
                        digest.update(line)
                        count += 1
            os.unlink(self.path(name))
            found[name] = count, digest.hexdigest()
        return found

    def compare(self, command, inputs, outputs, more, lines=4_500, appear=(), memory=30, peak=60):
        """Compares the outputs of a bounded and an unbounded run, which takes `peak` MiB, or the bound would not matter; returns
        their numbers of lines. `appear`: outputs whose names are not in options."""
        arguments = [word for option, name in outputs.items() for word in (option, self.path(name))] + more + inputs
        names = [*outputs.values(), *appear]
        status, errors, taken = measured([command, "--cpu", "2", "--mem", "8G", "--quiet", *arguments])
        self.assertEqual(status, 0, errors)
        self.assertGreater(taken, peak * MIB)
        want = self.results(names)
        for name, (count, _) in want.items():
            self.assertGreater(count, 20 if name.endswith(".hmm") else lines, name)
        status, errors = self.search(memory, arguments, command)
        self.assertEqual(status, 0, errors)
        self.assertEqual(self.results(names), want)
        if ALL:
            with ControlGroup(64 * MIB) as group:
                status, errors = self.search(memory, arguments, command, group.prefix)
            self.assertIn((status, errors.count("\n")), ((0, 0), (RESOURCES, 1)), errors)
            self.assertEqual(self.results(names) if status == 0 else [os.path.exists(self.path(name)) for name in names],
                             want if status == 0 else [False] * len(names))
        return {name: count for name, (count, _) in want.items()}

    def near_copies(self, count):
        targets = self.path("many.fasta")
        scenario.write_fasta(targets, ([f"t{number}", "a near copy", self.copies[number % len(self.copies)]]
                                       for number in range(count)))
        return targets

    def test_many_hits(self):
        outputs = {option: "hits" + option.strip("-") for option in
                   ("-o", "-A", "--tblout", "--domtblout", "--pfamtblout", "--tsv", "--json", "--a3m",
                    "--gff", "--bed", "--fasta", "--domfasta")}
        counts = self.compare("search", [self.model, self.near_copies(1_000_000 if ALL else 30_000)], outputs,
                              ["--seq-limit", "25000"], memory=200 if ALL else 30)
        self.assertEqual(counts["hitsa3m"], 3 + 2 * 25_000)  # the consensus; one domain of each target

    def test_outputs_by_target(self):
        """Hits are stored until all models are finished, then written target by target. The bound is far below the size
        of all hits."""
        targets, models = self.near_copies(333_334 if ALL else 17_500), self.path("three.hmm")
        self.write(models, b"".join(re.sub(rb"(?m)^NAME .*", b"NAME  " + name, read(self.model))
                                    for name in (b"first", b"second", b"third")))
        for options, more in ((["--gff", "--bed", "--fasta", "--domfasta"], []), (["--tblout", "--domtblout"], ["--as", "hmmscan"])):
            with self.subTest(options=options):
                self.compare("search", [models, targets], {option: "by_target" + option for option in options},
                             ["-o", "/dev/null", "--noali", *more], 32_500, memory=200 if ALL else 10, peak=40)

    def test_domains_that_are_sorted_on_disk(self):
        """Open files and buffers are few for any memory bound."""
        targets, tables = self.near_copies(len(self.copies)), []
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
        less = self.path("less.hmm")
        ok(scenario.run(["hmmbuild", "--amino", less,
                         self.write("less.sto", f"# STOCKHOLM 1.0\nfamily {self.domain[:27]}\n//\n")]))
        self.write(models, b"".join(re.sub(rb"(?m)^NAME .*", b"NAME  " + name, read(model)) for name, model in
                                    ((b"a_with_a_name_of_many_letters", less), (b"b", self.model), (b"c", self.model))))
        outputs = {option: "scan" + option.strip("-") for option in
                   ("-o", "--tblout", "--domtblout", "--pfamtblout")}
        thresholds = [["-E", "1e-20", "--domE", "1e-19"], ["-T", "60", "--domT", "61"]]
        for more in thresholds if ALL else [random.Random(scenario.SEED).choice(thresholds)]:
            with self.subTest(options=more):
                self.compare("scan", [models, sequences], outputs, more)


class ControlGroup:
    """A control group with a memory limit within our own group; commands behind `prefix` run in it."""

    def __init__(self, limit):
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
            self.prefix = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', os.path.join(folder, "cgroup.procs")]
            try:
                for name, value in files.items():
                    with open(os.path.join(folder, name), "w") as file:
                        file.write(str(value))
                if scenario.run([*self.prefix, "true"]).returncode == 0:
                    return
            except OSError:
                pass
            self.__exit__()  # the controller is not enabled for subgroups
        raise unittest.SkipTest("no control group with a memory limit can be made here")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                os.rmdir(self.folder)
                return
            except OSError:  # the last process has not left it yet
                time.sleep(0.05)


@unittest.skipIf(scenario.hmmsearch_missing() or shutil.which("hmmbuild") is None, "HMMER is not installed")
class ControlGroupTest(SharedInputs):
    """The kernel kills a process that exceeds its group's limit; hmmjit must never let it."""

    def make_inputs(self):
        generator = random.Random(20262)
        self.models, self.targets = self.path("m.hmm"), self.path("t.fasta")
        targets = []
        with open(self.models, "wb") as models:
            for number, length in enumerate((80, 300, 700)):
                sequence = "".join(generator.choices(RESIDUES, k=length))
                alignment, model = self.write("one.sto", f"# STOCKHOLM 1.0\nfamily{number} {sequence}\n//\n"), self.path("one.hmm")
                ok(scenario.run(["hmmbuild", "--amino", "-n", f"family{number}", model, alignment]))
                models.write(read(model))
                for copy in range(200):
                    changed = [generator.choice(RESIDUES) if generator.random() < 0.3 else residue
                               for residue in sequence]
                    targets.append([f"t{number}_{copy}", "a copy", "".join(changed)])
        scenario.write_fasta(self.targets, targets)

    def search(self, limit, options):
        output = self.path("out.tbl")
        if os.path.exists(output):
            os.unlink(output)
        with ControlGroup(limit * MIB) as group:
            done = subprocess.run([*group.prefix, scenario.program, "search", "--quiet", "--device", "cpu", *options, "--tblout", output,
                                   "-o", self.path("out"), "-A", self.path("out.sto"), self.models, self.targets],
                                  capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, RESOURCES), (limit, options, done.stderr))
        return done, read(output) if os.path.exists(output) else None

    def test_no_search_is_ended_by_the_kernel(self):
        unlimited = self.path("unlimited.tbl")
        ok(scenario.search(["--device", "cpu", "--tblout", unlimited, self.models, self.targets]))
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

    def test_a_search_of_nucleotides_takes_the_threads_that_fit(self):
        dna, model, stats = self.path("dna.fasta"), self.path("dna.hmm"), self.path("stats")
        scenario.write_fasta(dna, [["dna", "", "ACGTTGCAAC" * 20]])
        ok(scenario.run(["hmmbuild", "--dna", model, dna]))
        for command in ("nhmmer", "nhmmscan"):
            with ControlGroup(64 * MIB) as group:
                done = subprocess.run([*group.prefix, scenario.program, command, "--quiet", "--cpu", "64", "--stats", stats, model, dna],
                                      capture_output=True, text=True, timeout=300)
            self.assertEqual((done.returncode, done.stderr.count("threads are used")), (0, 1), done.stderr)
            self.assertLess(json.loads(read(stats))["threads"], 64)

    def test_a_group_that_is_too_small_for_anything(self):
        done, table = self.search(16, ["--cpu", "2"])
        self.assertEqual(done.returncode, RESOURCES)
        self.assertIn("the control group of this process has", done.stderr)
        self.assertIn("raise the memory limit of the job, container or control group", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIsNone(table)


if __name__ == "__main__":
    scenario.main()
