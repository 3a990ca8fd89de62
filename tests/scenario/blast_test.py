"""Databases of makeblastdb as targets: results are hmmsearch's, which reads version 4; version 5 gives the same.
cases/target_databases.txt compares records with blastdbcmd's, cases/bad_input.txt has refusals."""
import os
import random
import re
import shutil
import subprocess
import unittest

import scenario
from scenario import SharedInputs, example_model, hmmsearch, ok, read, result_lines, search

INPUT_ERROR = 3


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
@unittest.skipIf(shutil.which("makeblastdb") is None, "makeblastdb (Debian: ncbi-blast+) not installed")
class BlastDatabases(SharedInputs):
    def make_inputs(self):
        self.models = [example_model(name, self.folder) for name in ("fn3.hmm", "Pkinase.hmm", "globins4.hmm")]
        self.library = self.join_models(self.models)
        self.records = scenario.emitted_targets(self.models, 11, per_model=15, decoys=60)
        # All kinds of names, some with several definition lines, as in nr.
        forms = ["sp|P{0:05d}|NAME{0}_TEST", "gi|{1}|gb|AAA{0:05d}.1|", "ref|WP_{0:09d}.2|",
                 "lcl|local{0}", "plain{0}", "tr|A0A{0:03d}XYZ1|A{0}_TEST", "prf||{0:07d}A", "gnl|own|x{0}",
                 "emb|CAA{0:05d}.1|", "pir||S{0:05d}", "lcl|{1}"]
        self.named = [[forms[i % len(forms)].format(i, 100000 + i), description, residues.replace("*", "X")]
                      for i, (_, description, residues) in enumerate(self.records)]
        for record in self.named:
            if record[0].startswith("gnl|"):
                record[1] = record[1] or "word of the name"  # hmmsearch needs one for the name
        for i in range(0, len(self.named), 7):
            self.named[i][1] = f"first\x01ref|NP_{i:06d}.1| second description\x01sp|Q{i:05d}|SAME{i}_TEST third"

    def make(self, records, name, version, *options, kind="prot"):
        source = self.path(name + ".source")
        scenario.write_fasta(source, records)
        ok(scenario.run(["makeblastdb", "-in", source, "-dbtype", kind, "-title", "made for a test", "-out",
                         self.path(name), "-blastdb_version", str(version), *options]))
        return self.path(name)

    def run_both(self, database, *options, ours=None):
        """The result lines of hmmsearch and hmmjit. `ours`: another database for hmmjit."""
        outputs = []
        for program, target in ((hmmsearch, database), (search, ours or database)):
            paths = [self.path(f"{program.__name__}.{kind}") for kind in ("tbl", "dom", "sto")]
            done = ok(program(["--tformat", "ncbi", "--tblout", paths[0], "--domtblout", paths[1], "-A", paths[2],
                               *options, self.library, target]))
            texts = [result_lines(done.stdout)] + [result_lines(read(path)) for path in paths]
            texts[0] = [line for line in texts[0] if line]
            texts[3] = [line for line in read(paths[2]).decode().split("\n") if not line.startswith("#=GF AU")]
            outputs.append(texts)
        return outputs

    def test_results_are_those_of_hmmsearch(self):
        for name, records, parsed in (("plain", self.records, ()), ("named", self.named, ("-parse_seqids",))):
            fourth = self.make(records, name + "4", 4, *parsed)
            fifth = self.make(records, name + "5", 5, *parsed)
            for options in ((), ("--acc", "-E", "1e-3"), ("--max", "--noali")):
                with self.subTest(database=name, options=options):
                    wanted, got = self.run_both(fourth, *options)
                    self.assertGreater(len(wanted[1]), 20)
                    self.assertEqual(got, wanted)
                    self.assertEqual(self.run_both(fourth, *options, ours=fifth)[1], wanted)

    def test_volumes_memory_and_names(self):
        records = [[f"{name}_{turn}", description, residues] for turn in range(60)
                   for name, description, residues in self.records]
        size = sum(len(record[2]) for record in records)
        database = self.make(records, "many", 5, "-max_file_sz", f"{size // 3}B")
        volumes = sorted(name for name in os.listdir(self.folder) if name.startswith("many") and name.endswith(".pin"))
        self.assertGreater(len(volumes), 2)
        fasta = self.path("many.source")
        table = self.path("table")

        def rows(target, *options, **keywords):
            done = ok(search(["-o", "/dev/null", "--tblout", table, *options, self.library, target], **keywords))
            return result_lines(read(table))
        wanted = rows(fasta)
        self.assertGreater(len(wanted), 500)
        self.assertEqual(rows(database), wanted)  # recognised, because no file has this name
        self.assertEqual(rows(database, "--mem", "1M", "--cpu", "1"), wanted)  # streamed, model by model
        self.assertTrue(0 < len(rows(self.path(volumes[0][:-len(".pin")]))) < len(wanted))
        # As in hmmsearch, a FASTA file of the same name comes first, unless the format is named.
        shutil.copy(self.models[0], self.path("many"))
        done = search([self.library, database])
        self.assertEqual(done.returncode, INPUT_ERROR, done.stderr)
        self.assertEqual(rows(database, "--tformat", "ncbi"), wanted)
        os.remove(self.path("many"))
        # In $BLASTDB, like BLAST's programs.
        ok(subprocess.run([scenario.program, "search", "--quiet", "-o", "/dev/null", "--tblout", table, self.library, "many"],
                          cwd="/", env=dict(os.environ, BLASTDB=self.folder), capture_output=True))
        self.assertEqual(result_lines(read(table)), wanted)

    def test_nucleotides(self):
        """nhmmer's results with FASTA, and with a database of version 4 of A, C, G and T only."""
        model = example_model("MADE1.hmm", self.folder)
        letters = random.Random(5)
        records = []
        made = scenario.run(["hmmemit", "--seed", "7", "-N", "40", model]).stdout.decode().upper()
        for i, (_, _, emitted) in enumerate(scenario.fasta_records(made)):
            flanks = ["".join(letters.choices("ACGT", k=1000 + i)) for _ in range(2)]
            spoilt = "".join(letters.choice("RYKMSWBDHVN") if letters.random() < 0.02 else c for c in emitted)
            unknown = "N" * (i * 150)  # runs of more than 16, and of more than 4,096
            records.append([f"chromosome{i}", f"number {i}", flanks[0] + spoilt + unknown + emitted + flanks[1]])
        records.append(["short", "", "AC"])

        def results(program, *arguments):
            table = self.path("table")
            done = ok(scenario.run([*program, "--dna", "-o", self.path("out"), "--tblout", table, *arguments]))
            return result_lines(read(table)), result_lines(read(self.path("out")))
        for version, options in ((4, ()), (5, ()), (5, ("-max_file_sz", "20000B"))):
            with self.subTest(version=version, options=options):
                database = self.make(records, f"nt{version}{len(options)}", version, *options, kind="nucl")
                wanted = results(["nhmmer"], "--tformat", "fasta", model, database + ".source")
                self.assertGreater(len(wanted[0]), 60)
                self.assertEqual(results([scenario.program, "nhmmer"], model, database), wanted)
                with open(database + (".nsq" if not options else ".00.nsq"), "r+b") as file:
                    file.truncate(100)
                done = scenario.run([scenario.program, "nhmmer", model, database])
                self.assertEqual(done.returncode, INPUT_ERROR)
                self.assertIn(b"lies outside the file", done.stderr)
        plain = self.make([[name, text, re.sub("[^ACGT]", "", letters)] for name, text, letters in records], "plain", 4,
                          kind="nucl")  # nhmmer misreads other letters
        self.assertEqual(results([scenario.program, "nhmmer"], model, plain),
                         results(["nhmmer"], "--tformat", "ncbi", model, plain))
        large = self.make([["large", "", "ACGT" * 5_000_000]], "large", 4, kind="nucl")
        done = scenario.run([scenario.program, "nhmmer", "--mem", "32M", model, large])
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(b"large", done.stderr)
        self.assertIn("of proteins", scenario.run([scenario.program, "nhmmer", "--tformat", "ncbi", model,
                                                   self.make(self.records, "whole", 5)]).stderr.decode())


if __name__ == "__main__":
    scenario.main()
