"""Damage of target databases is reported. cases/target_databases.txt compares them with FASTA."""
import json
import os
import random
import subprocess
import unittest

import scenario
from scenario import SEED, SharedInputs, example_model, read, search

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm"]
INPUT_ERROR = 3


def db(arguments, **keywords):
    return scenario.run([scenario.program, "db"] + arguments, **keywords)


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Database(SharedInputs):
    def make_inputs(self):
        models = [example_model(name, self.folder) for name in MODELS]
        self.library = self.join_models(models)
        fasta, self.database = self.path("targets.fasta"), self.path("targets.hjdb")
        scenario.write_fasta(fasta, scenario.emitted_targets(models, SEED, per_model=30, decoys=200))
        scenario.ok(db(["build", "--quiet", "-o", self.database, fasta]))
        information = json.loads(db(["info", "--json", self.database]).stdout)
        self.sections = {section["name"]: section for section in information["sections"]}

    def test_damage_is_one_line_and_status_3(self):
        good = read(self.database)
        bad = self.path("bad.hjdb")
        for name, at in [("header", 33), ("about", self.sections["about"]["offset"] + 2),
                         ("residues", self.sections["residues"]["offset"] + 40),
                         ("targets", self.sections["targets"]["offset"] + 32),
                         ("text", self.sections["text"]["offset"] + 3),
                         ("order", self.sections["order"]["offset"] + 4)]:
            self.write(bad, good[:at] + bytes([good[at] ^ 0x84]) + good[at + 1:])
            done = db(["verify", bad])
            with self.subTest(section=name):
                self.assertEqual(done.returncode, INPUT_ERROR)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                self.assertIn(name.encode(), done.stderr)
            searched = search([self.library, bad])
            self.assertIn(searched.returncode,
                          (INPUT_ERROR,) if name in ("header", "residues", "targets") else (0,))
        for size in (0, 7, 100, 511, 512, 700, len(good) // 2, len(good) - 1):
            self.write(bad, good[:size])
            for done in (db(["verify", bad]), db(["info", bad]),
                         search(["--tblout", self.path("t"), self.library, bad])):
                self.assertEqual(done.returncode, INPUT_ERROR, (size, done))
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertFalse(os.path.exists(self.path("t")))

    def test_file_overwritten_while_it_is_searched(self):
        """For any new content, the search ends with a status, never with an invalid access."""
        many = self.write("many.hmm", read(self.library) * 20)
        good = read(self.database)
        rng = random.Random(SEED)
        noise = bytes(rng.choices(range(256), k=len(good)))
        codes = bytes(rng.choices(range(29), k=len(good)))
        statuses = []
        everything = ["residues", "targets", "text", "order"]
        for names, filler, options in (
                (["residues"], b"\xff" * len(good), []), (["targets"], b"\xff" * len(good), []),
                (everything, b"\xff" * len(good), []), (everything, noise, []),
                (["residues"], noise, ["--max"]), (["targets"], noise, ["--restrictdb_n", "200"]),
                (everything, noise, ["--mem", "100K"]), (["text"], noise, []),
                (everything, codes, [])):
            self.write(self.database, good)
            run = subprocess.Popen(
                [scenario.program, "search", "--quiet", "--noali", "--device", "cpu", "--cpu", "1",
                 "--tblout", self.path("never.tbl")] + options + [many, self.database],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for line in run.stdout:
                if line == b"//\n":
                    break
            with open(self.database, "rb+") as file:
                for name in names:
                    file.seek(self.sections[name]["offset"])
                    file.write(filler[:self.sections[name]["bytes"]])
            _, errors = run.communicate(timeout=300)
            with self.subTest(sections=names, first=filler[0], options=options):
                self.assertIn(run.returncode, (0, INPUT_ERROR), errors)
                self.assertEqual(errors.count(b"\n"), 1 if run.returncode else 0, errors)
                self.assertEqual([name for name in os.listdir(self.folder) if ".tmp-" in name], [])
                statuses.append(run.returncode)
        self.assertIn(INPUT_ERROR, statuses)

if __name__ == "__main__":
    scenario.main()
