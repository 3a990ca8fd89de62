"""The program behaves like its users' other tools: progress apart from output and before the data, features and the best of
overlapping domains. cases/habits.txt and cases/pipelines.txt have the rest."""
import concurrent.futures
import csv
import os
import pty
import select
import shutil
import subprocess
import time
import unittest
import urllib.parse

import scenario
from scenario import SharedInputs, example_model, ok, read, result_lines, search

USAGE_ERROR = 2


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Habits(SharedInputs):
    def make_inputs(self):
        models = [example_model(name, self.folder) for name in ("fn3.hmm", "Pkinase.hmm", "globins4.hmm")]
        self.fn3, self.library = models[0], self.join_models(models)
        self.records = scenario.emitted_targets(models, 7, per_model=12, decoys=8)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, self.records)

    def says(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        text = done.stderr.decode()
        self.assertTrue(text.startswith("hmmjit"), text)
        for word in words:
            self.assertIn(word, text)

    # ----- progress

    def terminal(self, arguments, stdout=None, wanted=None):
        """The output of a search of a slow pipe to a terminal, which is its standard error and, unless `stdout` is
        given, its standard output. The pipe ends after two seconds, or when the output has `wanted`, in 20 s at most."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([scenario.program, "search", "--device", "cpu"] + arguments + [self.fn3, "-"],
                                   stdin=subprocess.PIPE, stdout=theirs if stdout is None else stdout, stderr=theirs)
        os.close(theirs)
        process.stdin.write(read(self.targets) * 400)  # the search reads 1 MiB at a time
        process.stdin.flush()
        text, until = b"", time.monotonic() + (2 if wanted is None else 20)
        while time.monotonic() < until and (wanted is None or wanted not in text):
            if select.select([ours], [], [], 0.1)[0]:
                text += os.read(ours, 65536)
        process.stdin.close()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        self.assertEqual(process.wait(timeout=120), 0)
        os.close(ours)
        return text

    def test_progress_never_mixes_with_the_report(self):
        progress = b"Gcells/s"
        with open(self.path("out"), "wb") as file:
            shown = self.terminal(["--noali"], stdout=file, wanted=progress)
        self.assertIn(progress, shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-80:])  # erases the line
        self.assertIn(progress, self.terminal(["--noali", "-o", self.path("out")], wanted=progress))
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for shown in pool.map(lambda stdout: self.terminal(["--noali"], stdout), (None, reader.stdin)):
                self.assertNotIn(progress, shown)
        reader.stdin.close()
        self.assertEqual(reader.wait(timeout=60), 0)

    def start(self, models, targets):
        """A search of pipes with a table, and our end of the terminal that is its standard error."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([scenario.program, "search", "--device", "cpu", "-o", "/dev/null", "--tblout", self.path("t.tbl"),
                                    models, targets], stdin=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        return process, ours

    def check_end(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertTrue(read(self.path("t.tbl")).endswith(b"# [ok]\n"))
        os.unlink(self.path("t.tbl"))

    def test_outputs_and_progress_come_before_the_data(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for models, targets in ((self.fn3, "-"), ("-", self.targets), (self.fn3, fifo)):
            process, terminal = self.start(models, targets)
            source = os.open(fifo, os.O_WRONLY) if targets == fifo else process.stdin.fileno()
            self.assertIn(b"0 models done", os.read(terminal, 1000))
            self.assertTrue(any(".tmp-" in name for name in os.listdir(self.folder)))
            data = read(self.fn3 if models == "-" else self.targets)
            while data:
                data = data[os.write(source, data):]
            if targets == fifo:
                os.close(source)
            self.check_end(process)
            os.close(terminal)

    def test_progress_outlives_its_terminal(self):
        process, terminal = self.start(self.fn3, "-")
        process.stdin.write(read(self.targets) * 400)  # it has started
        process.stdin.flush()
        self.assertIn(b"hmmjit", os.read(terminal, 1000))
        os.close(terminal)
        time.sleep(1.2)  # two more lines of progress
        self.check_end(process)

    # ----- outputs

    def features(self, options):
        tables = ["--domtblout", self.path("domtbl"), "--tblout", self.path("tbl")]
        done = ok(search(["-o", "/dev/null", "--tsv", self.path("tsv"), "--pfamtblout", self.path("pfamtbl"), "--gff",
                          self.path("gff"), "--bed", self.path("bed"), "--fasta", self.path("fasta"), "--domfasta",
                          self.path("domains")] + tables + options + [self.library, self.targets]))

        def rows_of(table):
            return [line.split() for line in result_lines(read(self.path(table))) if line]

        lines = read(self.path("tsv")).decode().rstrip("\n").split("\n")
        head = lines[0].split("\t")
        rows = [dict(zip(head, line.split("\t"))) for line in lines[1:]]
        if "kept" in head:  # compare the column with the rows of the other outputs
            kept = [row for row in rows if row["kept"] == "1"]
            self.assertEqual(sorted((row["target"], row["env_from"], row["model"]) for row in kept),
                             sorted((row[0], str(int(row[1]) + 1), row[3]) for row in
                                    (line.split("\t") for line in read(self.path("bed")).decode().splitlines())))
            self.assertEqual([(row[0], row[3], row[19]) for row in rows_of("domtbl")],
                             [(row["target"], row["model"], row["env_from"]) for row in kept])
            targets = list(dict.fromkeys((row["target"], row["model"]) for row in kept))
            self.assertEqual([(row[0], row[2]) for row in rows_of("tbl")], targets)
            pfam = read(self.path("pfamtbl")).split(b"# Sequence scores")[1:]
            shown = [[line.split() for line in result_lines(half) if line]
                     for model in pfam for half in model.split(b"# Domain scores")]
            self.assertEqual([row[0] for half in shown[::2] for row in half], [target for target, _ in targets])
            self.assertEqual(sorted((row[0], row[5], row[6]) for half in shown[1::2] for row in half),
                             sorted((row["target"], row["env_from"], row["env_to"]) for row in kept))
            for half in shown[1::2]:
                self.assertEqual(sorted(half, key=lambda row: float(row[2])), half)
            # hmmscan's tables have exactly the same domains.
            ok(search(["-o", "/dev/null", "--as", "hmmscan"] + tables + [self.library, self.targets]))
            all_domains, all_targets = rows_of("domtbl"), rows_of("tbl")
            ok(search(["-o", "/dev/null", "--as", "hmmscan"] + tables + options + [self.library, self.targets]))
            remain = {(row["target"], row["model"], row["env_from"]) for row in kept}
            self.assertEqual(rows_of("domtbl"), [row for row in all_domains if (row[3], row[0], row[19]) in remain])
            self.assertEqual(rows_of("tbl"), [row for row in all_targets if (row[2], row[0]) in
                                              {(target, model) for target, model, _ in remain}])
            self.assertLess(len(rows_of("domtbl")), len(all_domains))
        else:
            self.assertEqual(len(rows_of("domtbl")), len(rows))
        return [row for row in rows if row["included"] == "1" and row["domain_included"] == "1"]

    def test_features_are_the_included_domains(self):
        rows = self.features([])
        self.assertGreater(len(rows), 30)
        want = sorted((row["target"], int(row["env_from"]), int(row["env_to"]), row["model"],
                       "%.3g" % float(row["i_evalue"]), scenario.printed(row["domain_score"], 1)) for row in rows)
        gff = read(self.path("gff")).decode().splitlines()
        self.assertEqual(gff[0], "##gff-version 3")
        regions = {line.split()[1]: int(line.split()[3]) for line in gff if line.startswith("##sequence-region")}
        got = []
        for line in gff:
            if line.startswith("#"):
                continue
            name, source, kind, start, end, score, strand, phase, attributes = line.split("\t")
            self.assertEqual((source, kind, strand, phase), ("hmmjit", "protein_hmm_match", ".", "."))
            self.assertLessEqual(int(end), regions[name])
            values = dict(item.split("=", 1) for item in attributes.split(";"))
            got.append((name, int(start), int(end), values["Name"], score, values["bits"]))
        self.assertEqual(sorted(got), want)
        bed = [line.split("\t") for line in read(self.path("bed")).decode().splitlines()]
        self.assertEqual(sorted((row[0], int(row[1]) + 1, int(row[2]), row[3], row[6], row[7]) for row in bed), want)
        sequences = {name: (description, residues) for name, description, residues in self.records}
        fasta = scenario.fasta_records(read(self.path("fasta")).decode())
        self.assertEqual([record[0] for record in fasta],
                         [name for name, _, _ in self.records if name in {row["target"] for row in rows}])
        for name, description, residues in fasta:
            self.assertEqual((description, residues), (sequences[name][0], sequences[name][1].upper()))
        parts = scenario.fasta_records(read(self.path("domains")).decode())
        self.assertEqual(len(parts), len(rows))
        for name, description, residues in parts:
            whole, _, place = name.rpartition("/")
            start, end = map(int, place.split("-"))
            self.assertEqual(residues, sequences[whole][1].upper()[start - 1:end])
        self.says(search(["--fasta", self.path("x"), self.fn3, "-"], data=read(self.targets)), USAGE_ERROR,
                  "give a file instead of a pipe")
        self.says(search(["--resolve-overlaps", self.fn3, self.targets]), USAGE_ERROR, "--gff")

    def test_names_that_formats_would_take_for_something_else(self):
        # Comments, headers, quotes, and separators in GFF3, BED and CSV.
        residues = scenario.emitted_targets([self.fn3], 7, per_model=1, decoys=0)[0][2]
        names = ["#hash", "##gff-version", ">more", "track", "trackdb", "browser", "per%cent", "semi;colon=x", '"quote',
                 "'single", "=sum()", "-x"]
        scenario.write_fasta(self.targets, [[name, "", residues] for name in names])
        ok(search(["-o", "/dev/null", "--tsv", self.path("tsv"), "--gff", self.path("gff"), "--bed", self.path("bed"),
                   "--resolve-overlaps", "--domtblout", self.path("domtbl"), self.fn3, self.targets]))
        table = [line.split()[0] for line in read(self.path("domtbl")).decode().splitlines()]
        self.assertEqual({name for name in names if name in table}, set(names))
        with open(self.path("tsv"), newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual({row["target"] for row in rows}, set(names))
        gff = read(self.path("gff")).decode().splitlines()
        lines = [line for line in gff[1:] if not line.startswith(("##sequence-region ", ">"))]
        self.assertEqual(len(lines), len(rows))
        self.assertEqual({urllib.parse.unquote(line.split("\t")[0]) for line in lines}, set(names))
        self.assertEqual(sum(line.startswith("#") for line in lines), 0)
        bed = read(self.path("bed")).decode().splitlines()
        self.assertEqual(len(bed), len(rows))
        self.assertFalse([line for line in bed if line.startswith(("#", "track", "browser"))])

    def test_the_best_of_overlapping_domains(self):
        # A second model of the same family, built from part of the first's alignment, competes with it.
        stockholm = os.path.join(scenario.EXAMPLES, "tutorial", "fn3.sto")
        if not os.path.exists(stockholm) or shutil.which("hmmbuild") is None:
            self.skipTest("hmmbuild or fn3.sto not installed")
        other = self.path("other.hmm")
        ok(scenario.run(["hmmbuild", "-n", "fn3_again", "--wnone", other, stockholm]))
        with open(self.library, "ab") as file:
            file.write(scenario.run(["hmmconvert", other]).stdout)
        with open(self.library, "rb") as file:  # one format for all
            converted = scenario.run(["hmmconvert", "-"], data=file.read())
        self.write(self.library, converted.stdout)

        def shared(a, b):
            return min(int(a["env_to"]), int(b["env_to"])) - max(int(a["env_from"]), int(b["env_from"])) + 1

        def resolved(rows, compete):
            kept = []
            for row in sorted(rows, key=lambda row: (float(row["i_evalue"]), -float(row["domain_score"]))):
                if not any(row["target"] == k["target"] and compete(row, k) for k in kept):
                    kept.append(row)
            return sorted((row["target"], int(row["env_from"]), row["model"]) for row in kept)

        def written():
            return sorted((line.split("\t")[0], int(line.split("\t")[1]) + 1, line.split("\t")[3])
                          for line in read(self.path("bed")).decode().splitlines())

        everything = self.features([])
        rows = self.features(["--resolve-overlaps"])
        half = resolved(rows, lambda a, b: a["model"] != b["model"] and 2 * shared(a, b) >= min(
            int(x["env_to"]) - int(x["env_from"]) + 1 for x in (a, b)))
        self.assertEqual(written(), half)
        self.assertLess(len(half), len(everything))
        clans = self.path("clans.tsv")
        with open(clans, "w") as file:
            file.write("PF00041\tCL0159\tE-set\tfn3\tFibronectin\nPF99999\tCL0159\tE-set\tfn3_again\tagain\n"
                       "PF00069\t\t\tPkinase\tkinase\n")
        rows = self.features(["--clans", clans])
        clan = {"fn3": 1, "fn3_again": 1}
        same = resolved(rows, lambda a, b: a["model"] != b["model"] and shared(a, b) > 0 and
                        clan.get(a["model"], 0) == clan.get(b["model"], -1))
        self.assertEqual(written(), same)
        self.assertLess(len(same), len(everything))


if __name__ == "__main__":
    scenario.main()
