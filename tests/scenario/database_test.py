"""Target databases give the same bytes as FASTA with all options; damage is reported."""
import gzip
import json
import os
import random
import subprocess
import unittest

import scenario
from scenario import SEED, SharedInputs, example_model, first_difference, ok, read, result_lines, search

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm"]
INPUT_ERROR = 3


def db(arguments, **keywords):
    return scenario.run([scenario.program, "db"] + arguments, **keywords)


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Database(SharedInputs):
    def make_inputs(self):
        models = [example_model(name, self.folder) for name in MODELS]
        self.library = self.join_models(models)
        records = scenario.emitted_targets(models, SEED, per_model=30, decoys=200)
        records += [["empty", "no residues", ""], ["stars", "", "*" * 30], ["one", "", "W"],
                    ["x", "all unknown", "X" * 200], ["same", "", records[0][2]],
                    ["same", "", records[0][2]]]
        self.records = records
        self.fasta = self.path("targets.fasta")
        scenario.write_fasta(self.fasta, records)
        self.database = self.path("targets.hjdb")
        done = db(["build", "--quiet", "-o", self.database, self.fasta])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def outputs(self, targets, options):
        paths = [self.path("result." + name) for name in ("o", "t", "d", "p", "a")]
        ok(search(["-o", paths[0], "--tblout", paths[1], "--domtblout", paths[2], "--pfamtblout", paths[3], "-A", paths[4]] +
                  options + [self.library, targets]))
        return [result_lines(read(path)) for path in paths[:4]] + [read(paths[4]).split(b"\n")]

    def test_same_bytes_as_fasta(self):
        for options in ([], ["--cpu", "1"], ["--cpu", "7", "--mem", "200K"],
                        ["--max", "--cpu", "2", "--restrictdb_n", "60"], ["--nobias", "--notextw"],
                        ["-E", "100", "--domE", "100", "--acc"], ["-T", "20", "--incT", "25"],
                        ["-Z", "1000", "--domZ", "10", "--nonull2", "--seed", "7"],
                        ["--F1", "0.9", "--F2", "0.9", "--F3", "0.5", "--noali"],
                        ["--restrictdb_stkey", self.records[30][0], "--restrictdb_n", "50"]):
            with self.subTest(options=options):
                for want, got in zip(self.outputs(self.fasta, options),
                                     self.outputs(self.database, options)):
                    self.assertGreater(len(want), 3)
                    if want != got:
                        self.fail(first_difference(want, got))

    def test_streams_in_several_passes(self):
        statistics = self.path("stats.json")
        many = self.write("many.hmm", read(self.library) * 3)
        for memory in ([], ["--mem", "200K"]):
            found = []
            for targets in (self.fasta, self.database):
                done = ok(search(["--noali", "--stats", statistics] + memory + [many, targets]))
                found.append(result_lines(done.stdout))
            report = json.loads(read(statistics))
            self.assertEqual(report["targets_streamed"], bool(memory))
            self.assertGreaterEqual(report["target_passes"], 2 if memory else 1)
            self.assertFalse(report["targets_spooled"])
            strip = lambda lines: [x for x in lines if not x.startswith(("# CPU", "# Mc"))]
            self.assertEqual(strip(found[0]), strip(found[1]))

    def test_inputs_of_every_kind_and_several(self):
        compressed = self.write("targets.fasta.gz", gzip.compress(read(self.fasta)))
        ok(db(["build", compressed]))  # default name
        information = [json.loads(db(["info", "--json", path]).stdout)
                       for path in (self.database, self.path("targets.fasta.hjdb"))]
        self.assertEqual(information[0]["sections"][:4], information[1]["sections"][:4])
        piped = self.path("piped.hjdb")
        ok(db(["build", "-o", piped, "-"], data=read(self.fasta)))
        embl = self.path("targets.embl")
        scenario.write_embl(embl, self.records[:40])
        joined = self.path("joined.hjdb")
        ok(db(["build", "-o", joined, piped, embl, compressed]))
        ok(db(["verify", joined]))
        count = len(self.records)
        report = json.loads(db(["info", "--json", joined]).stdout)
        self.assertEqual(report["targets"], 2 * count + 40)
        self.assertEqual(report["residues"], 2 * information[0]["residues"] +
                         sum(len(record[2]) for record in self.records[:40]))
        self.assertEqual(report["sources"], [piped, embl, compressed])
        # Accessions are kept.
        want = search(["--tblout", self.path("w"), "--acc", self.library, embl])
        only = self.path("embl.hjdb")
        ok(db(["build", "-o", only, embl]))
        got = search(["--tblout", self.path("g"), "--acc", self.library, only])
        self.assertEqual(result_lines(read(self.path("w"))), result_lines(read(self.path("g"))))
        self.assertEqual(want.returncode, 0)
        self.assertRegex(read(self.path("g")), rb"Q000\d\d ")  # three of four targets have one
        self.assertEqual(got.returncode, 0)

    def test_the_same_file_every_time(self):
        again = self.path("again.hjdb")
        ok(db(["build", "-o", again, self.fasta]))
        self.assertEqual(read(again), read(self.database))

    def many_inputs(self):
        """More inputs than threads: small, larger than the queue, compressed, a database."""
        inputs = []
        long = "".join(random.Random(SEED).choices("ACDEFGHIKLMNPQRSTVWY", k=70000))
        for n in range(24):
            path = self.path(f"input{n}.fasta")
            records = [[f"{n}_{name}", description, residues] for name, description, residues in self.records[n:n + 9]]
            # Lengths above 65,535 are sorted separately.
            records += [[f"{n}_long", "", long[n % 3:]]] * (n % 4) + [[f"{n}_most", "", long[:66000 + n % 2]]]
            scenario.write_fasta(path, records)
            if n in (3, 4, 11):
                text = read(path) * (40 if n == 11 else 1)
                path += ".gz"
                self.write(path, gzip.compress(text, 1))
            inputs.append(path)
        inputs.insert(7, self.database)
        with open(inputs[9], "ab") as file:
            file.write(read(inputs[9]) * 30)
        return inputs

    def test_threads_change_no_byte(self):
        inputs = self.many_inputs()
        found = set()
        for threads in ("1", "2", "3", "16"):
            path = self.path("threads.hjdb")
            done = db(["build", "--quiet", "--cpu", threads, "-o", path] + inputs)
            self.assertEqual((done.returncode, done.stderr), (0, b""), threads)
            ok(db(["verify", "--quiet", path]))
            found.add(read(path))
        self.assertEqual(len(found), 1)
        # Targets are in the order of the inputs.
        plain = [gzip.decompress(read(path)) if path.endswith(".gz") else read(path) for path in inputs
                 if path != self.database]
        wanted = [line[1:].split()[0] for line in b"\n".join(plain).split(b"\n") if line.startswith(b">")]
        place = sum(text.count(b">") for text in plain[:7])
        wanted[place:place] = [record[0].encode() for record in self.records]
        names = db(["fetch", path] + sorted({name.decode() for name in wanted})).stdout
        self.assertEqual([line[1:].split()[0] for line in names.split(b"\n") if line.startswith(b">")], wanted)

    def test_the_first_bad_input_is_named(self):
        inputs = self.many_inputs()
        bad, worse = inputs[13], inputs[20]
        with open(bad, "ab") as file:
            file.write(b">last\nACD1EFG\n")
        os.remove(worse)
        for threads in ("1", "2", "16"):
            done = db(["build", "--cpu", threads, "-o", self.path("x"), *inputs])
            self.assertEqual(done.returncode, INPUT_ERROR)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertIn(os.path.basename(bad).encode() + b":", done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_damage_is_one_line_and_status_3(self):
        good = read(self.database)
        sections = {section["name"]: section for section in
                    json.loads(db(["info", "--json", self.database]).stdout)["sections"]}
        bad = self.path("bad.hjdb")
        for name, at in [("header", 33), ("about", sections["about"]["offset"] + 2),
                         ("residues", sections["residues"]["offset"] + 40),
                         ("targets", sections["targets"]["offset"] + 32),
                         ("text", sections["text"]["offset"] + 3),
                         ("order", sections["order"]["offset"] + 4)]:
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

    def test_file_cut_short_while_it_is_searched(self):
        many = self.write("many.hmm", read(self.library) * 200)
        table = self.path("never.tbl")
        run = subprocess.Popen([scenario.program, "search", "--quiet", "--noali", "--cpu", "1",
                                "--tblout", table, many, self.database],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in run.stdout:  # wait for the first model
            if line == b"//\n":
                break
        os.truncate(self.database, 600)
        _, errors = run.communicate(timeout=300)
        self.assertEqual(run.returncode, INPUT_ERROR, errors)
        self.assertEqual(errors.count(b"\n"), 1)
        self.assertIn(b"cut short", errors)
        self.assertEqual([name for name in os.listdir(self.folder) if "never" in name], [])

    def test_file_overwritten_while_it_is_searched(self):
        """For any new content, the search ends with a status, never with an invalid access."""
        many = self.write("many.hmm", read(self.library) * 20)
        good = read(self.database)
        sections = {section["name"]: section for section in
                    json.loads(db(["info", "--json", self.database]).stdout)["sections"]}
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
                    file.seek(sections[name]["offset"])
                    file.write(filler[:sections[name]["bytes"]])
            _, errors = run.communicate(timeout=300)
            with self.subTest(sections=names, first=filler[0], options=options):
                self.assertIn(run.returncode, (0, INPUT_ERROR), errors)
                self.assertEqual(errors.count(b"\n"), 1 if run.returncode else 0, errors)
                self.assertEqual([name for name in os.listdir(self.folder) if ".tmp-" in name], [])
                statuses.append(run.returncode)
        self.assertIn(INPUT_ERROR, statuses)

if __name__ == "__main__":
    scenario.main()
