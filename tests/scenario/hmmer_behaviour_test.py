"""What HMMER's own integration tests ask of hmmsearch, phmmer, jackhmmer and hmmscan, asked of the commands that
take their places; the answers are those of the installed programs. What is different on purpose stands in
docs/differences.md, and here."""
import os
import shutil
import subprocess
import unittest

import scenario
from scenario import ScratchFolder, example_model, hmmsearch, read, result_lines, search

USAGE_ERROR, INPUT_ERROR = 2, 3
AMINO = "ACDEFGHIKLMNPQRSTVWY"


def stockholm(names_and_rows, name, *annotation):
    rows = "".join(f"{row_name:<12} {row}\n" for row_name, row in names_and_rows)
    return f"# STOCKHOLM 1.0\n#=GF ID {name}\n" + "".join(f"#=GF {line}\n" for line in annotation) + "\n" + rows + "//\n"


def hmmjit(*arguments, **keywords):
    return scenario.run([scenario.program, *arguments], **keywords)


def rows_of(path):
    """Fields of the lines of a table."""
    return [line.split() for line in read(path).decode().split("\n") if line and not line.startswith("#")]


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class AsHmmersTests(ScratchFolder):
    def write(self, name, text):
        path = self.path(name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def build(self, name, alignment):
        model = self.path(name + ".hmm")
        done = scenario.run(["hmmbuild", model, self.write(name + ".sto", alignment)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return model

    def twenty(self, name="twenty", rows=3):
        """A model with one position for each residue."""
        return self.build(name, stockholm([(f"seq{i}", AMINO) for i in range(rows)], name))

    def same(self, arguments, **keywords):
        """Both programs succeed and give the same results; returns those lines."""
        texts = []
        for program in (hmmsearch, search):
            done = program(arguments, **keywords)
            self.assertEqual(done.returncode, 0, (program.__name__, arguments, done.stderr))
            texts.append([line for line in result_lines(done.stdout) if line])
        self.assertEqual(texts[0], texts[1], arguments)
        return texts[0]

    def test_random_numbers_repeat_and_depend_on_the_seed(self):
        models = [example_model(name, self.folder) for name in ("fn3.hmm", "Pkinase.hmm")]
        targets = self.path("targets.fasta")
        scenario.write_fasta(targets, scenario.emitted_targets(models, 3, per_model=30, decoys=20))
        fn3 = models[0]
        once = self.same([fn3, targets])
        self.assertEqual(self.same([fn3, targets]), once)
        self.assertEqual(self.same(["--seed", "42", fn3, targets]), once)
        # Close domains, whose limits are sampled.
        close = self.path("close.fasta")
        emitted = scenario.run(["hmmemit", "--seed", "5", "-N", "40", fn3])
        domains = [record[2] for record in scenario.fasta_records(emitted.stdout.decode())]
        scenario.write_fasta(close, [[f"t{i}", "", "".join(domains[i:i + 6])] for i in range(30)])
        self.assertNotEqual(self.same(["--seed", "2", fn3, close]), self.same(["--seed", "3", fn3, close]))

    def test_sequences_of_no_residues(self):
        model = example_model("globins4.hmm", self.folder)
        sequences = self.write("short.fasta", ">none\n>some\nYYYYY\n>nothing at the end\n")
        self.same([model, sequences])
        for command in (["scan", model, sequences], ["phmmer", sequences, sequences],
                        ["jackhmmer", sequences, sequences]):
            done = hmmjit(*command)
            self.assertEqual(done.returncode, 0, (command, done.stderr))

    def test_a_stop_between_residues(self):
        """A '*' in place of a residue divides the domain in two; one beside the residues does not."""
        model = self.twenty()
        for name, residues, domains in (("instead", AMINO[:9] + "*" + AMINO[10:], 2),
                                        ("beside", AMINO[:10] + "*" + AMINO[10:], 1)):
            targets = self.write(name + ".fasta", f">{name}\n{residues}\n")
            table = self.path(name + ".tbl")
            wanted = self.same(["--domtblout", table, model, targets])
            self.assertTrue(wanted)
            found = rows_of(table)
            self.assertEqual(len(found), domains, name)
            self.assertEqual({row[10] for row in found}, {str(domains)})

    def test_annotation_that_may_be_missing(self):
        """Accessions and descriptions of models and targets where they are, '-' where they are not."""
        rows = [(f"seq{i}", AMINO) for i in range(3)]
        model = self.build("annotated", stockholm(rows, "full", "AC QQ54321.7", "DE Words about it") +
                           stockholm(rows, "bare"))
        targets = self.write("targets.dat", "".join(
            f"ID   {name}   Reviewed;  20 AA.\n{annotation}SQ   SEQUENCE   20 AA;\n     {AMINO}\n//\n"
            for name, annotation in (("first", "AC   Q99999;\nDE   Words about the target\n"), ("second", ""))))
        full, bare = ["full", "QQ54321.7", "Words about it"], ["bare", "-", "-"]
        first, second = ["first", "Q99999", "Words about the target"], ["second", "-", "-"]
        table = self.path("dom")
        self.same(["--domtblout", table, model, targets])
        got = [[row[0], row[1], " ".join(row[22:]), row[3], row[4]] for row in rows_of(table)]
        self.assertEqual(got, [target + profile[:2] for profile in (full, bare) for target in (first, second)])
        self.assertEqual(scenario.run(["hmmpress", model]).returncode, 0)
        for command in (["hmmscan", "--cpu", "0"], [scenario.program, "scan"]):
            done = scenario.run([*command, "-o", "/dev/null", "--domtblout", table, model, targets])
            self.assertEqual(done.returncode, 0, done.stderr)
            got = [[row[0], row[1], " ".join(row[22:]), row[3], row[4]] for row in rows_of(table)]
            # Equal scores: by name.
            self.assertEqual(got, [profile + target[:2] for target in (first, second) for profile in (bare, full)])

    def test_names_that_come_twice(self):
        longer = AMINO[:10] + "L" + AMINO[10:]
        model = self.build("twice", "".join(
            stockholm([(f"seq{i}", row) for i in range(3)], "same") for row in (AMINO, longer)))
        sequences = self.write("twice.fasta", f">same\n{AMINO}\n>same\n{longer}\n")
        table = self.path("tbl")
        self.same(["--tblout", table, model, sequences])
        self.assertEqual(len(rows_of(table)), 4)
        for command in ("phmmer", "jackhmmer"):
            done = hmmjit(command, "-o", "/dev/null", "--tblout", table, sequences, sequences)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(rows_of(table)), 4, command)

    def test_alignments_hold_the_residues_of_their_targets(self):
        model = example_model("fn3.hmm", self.folder)
        aligned_total = 0
        for seed, number in ((1, 1), (2, 10), (3, 100)):
            for local in ("--unilocal", "--local"):
                done = scenario.run(["hmmemit", "--seed", str(seed), "-p", "-N", str(number), "-L", "20", local, model])
                self.assertEqual(done.returncode, 0, done.stderr)
                targets = self.path("targets.fasta")
                records = scenario.fasta_records(done.stdout.decode())
                scenario.write_fasta(targets, records)
                residues = {name: text.upper() for name, _, text in records}
                table, alignment = self.path("dom"), self.path("sto")
                done = search(["-E", "0.01", "--domE", "0.01", "-o", "/dev/null", "-A", alignment, "--domtblout",
                               table, model, targets])
                self.assertEqual(done.returncode, 0, done.stderr)
                rows = {}
                for line in read(alignment).decode().split("\n") if os.path.exists(alignment) else []:
                    if line and not line.startswith(("#", "//")):
                        name, text = line.split()
                        rows[name] = rows.get(name, "") + text
                domains = {f"{row[0]}/{row[17]}-{row[18]}" for row in rows_of(table)}
                self.assertEqual(set(rows), domains)
                for name, text in rows.items():
                    target, _, limits = name.rpartition("/")
                    start, end = map(int, limits.split("-"))
                    self.assertEqual(text.replace("-", "").replace(".", "").upper(), residues[target][start - 1:end])
                aligned_total += len(rows)
        self.assertGreater(aligned_total, 50)

    def test_models_and_targets_from_standard_input(self):
        models = [example_model(name, self.folder) for name in ("fn3.hmm", "globins4.hmm")]
        targets = self.path("targets.fasta")
        scenario.write_fasta(targets, scenario.emitted_targets(models, 3, per_model=10, decoys=10))
        one = models[0]
        wanted = self.same([one, targets])
        self.assertEqual(self.same(["-", targets], data=read(one)), wanted)
        self.assertEqual(self.same([one, "-"], data=read(targets)), wanted)
        done = search(["-", "-"], data=read(one) + read(targets))
        self.assertEqual(done.returncode, USAGE_ERROR)
        self.assertIn("either <hmmfile> or <seqdb> may be '-', but not both", done.stderr.decode())
        # A scan reads its models again for each lot of sequences: refused before anything is printed.
        done = hmmjit("scan", "-", targets, data=read(one))
        self.assertEqual((done.returncode, done.stdout), (USAGE_ERROR, b""))
        self.assertIn("<hmmdb>: the profiles are read several times; give a file", done.stderr.decode())
        # Several models and one pass over a pipe: hmmsearch refuses that, docs/differences.md.
        both = self.write("both.hmm", "".join(read(path).decode() for path in models))
        self.assertNotEqual(hmmsearch([both, "-"], data=read(targets)).returncode, 0)
        done = search([both, "-"], data=read(targets))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in result_lines(done.stdout) if line], self.same([both, targets]))

    def test_targets_of_every_format_are_read_again_for_the_next_model(self):
        model = self.twenty()
        twice = self.write("two.hmm", read(model).decode() * 2)
        records = [(f"target{i}", AMINO) for i in range(4)]
        files = {"fasta": self.write("t.fa", "".join(f">{name}\n{row}\n" for name, row in records)),
                 "afa": self.write("t.afa", "".join(f">{name}\n{row[:7]}---{row[7:]}\n" for name, row in records)),
                 "stockholm": self.write("t.sto", stockholm([(name, row[:7] + "---" + row[7:])
                                                             for name, row in records], "all"))}
        if shutil.which("makeblastdb"):
            files["ncbi"] = self.path("t.db")
            done = scenario.run(["makeblastdb", "-in", files["fasta"], "-dbtype", "prot", "-blastdb_version", "4",
                                 "-out", files["ncbi"]])
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            print("makeblastdb (Debian: ncbi-blast+) not installed: no BLAST database is tried")
        for form, path in files.items():
            lines = self.same(["--tformat", form, twice, path])
            spaces = [line.split(":")[1].split()[0] for line in lines if line.startswith("Domain search space")]
            self.assertEqual(spaces, ["4", "4"], form)

    def test_gaps_are_no_residues(self):
        model = example_model("globins4.hmm", self.folder)
        targets = self.write("gaps.fasta", ">gaps\n-MIKQ--VRPT\nWRG-AKK\n---\n")
        self.assertNotEqual(hmmsearch([model, targets]).returncode, 0)
        done = search([model, targets])
        self.assertEqual(done.returncode, INPUT_ERROR)
        self.assertIn("gaps.fasta:2: illegal character -", done.stderr.decode())

    def test_every_option(self):
        """Each by itself, with targets some of which are near its threshold."""
        globins, fn3 = (example_model(name, self.folder) for name in ("globins4.hmm", "fn3.hmm"))
        targets = self.path("targets.fasta")
        scenario.write_fasta(targets, scenario.emitted_targets([globins, fn3], 9, per_model=12, decoys=60))
        self.same([globins, targets])
        for option in ("--acc", "--noali", "--notextw", "--textw 256", "-E 0.01", "-T 20", "--domE 0.01", "--domT 20",
                       "--incE 0.01", "--incT 20", "--incdomE 0.01", "--incdomT 20", "--max", "--F1 0.03", "--F2 0.002",
                       "--F3 0.0002", "--nobias", "--nonull2", "-Z 45000000", "--domZ 45000000", "--seed 42",
                       "--tformat fasta"):
            self.same(option.split() + [globins, targets])
        for option in ("--cut_ga", "--cut_nc", "--cut_tc"):
            self.same([option, fn3, targets])
        for option in ("-o", "-A", "--tblout", "--domtblout", "--pfamtblout"):
            texts = []
            for program in (hmmsearch, search):
                path = self.path("output")
                done = program([option, path, globins, targets])
                self.assertEqual(done.returncode, 0, done.stderr)
                texts.append([line for line in read(path).decode().split("\n")
                              if line and not line.startswith(("#=GF AU",)) and not (option != "-A" and line[0] == "#")])
            self.assertGreater(len(texts[0]), 10, option)
            self.assertEqual(texts[0], texts[1], option)
        done = search(["-h"])
        self.assertEqual(done.returncode, 0)
        for line in subprocess.run(["hmmsearch", "-h"], capture_output=True, text=True).stdout.split("\n"):
            if line.startswith("  -"):
                self.assertIn(line.split()[0], done.stdout.decode())


if __name__ == "__main__":
    scenario.main()
