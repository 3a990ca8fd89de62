"""hmmjit align against the installed hmmalign, byte for byte. cases/build.txt has odd sequences.

Sequences and alignments are random. The seed is printed; HMMJIT_TEST_SEED repeats a run, HMMJIT_TEST_SECONDS sets the time
for random runs. HMMJIT_TEST_ALL: sequences as long as the generator makes them.
"""
import glob
import gzip
import os
import random
import re
import shutil
import time
import unittest

import scenario
from scenario import SEED, ScratchFolder, example_model, first_difference, read, run

SECONDS = float(os.environ.get("HMMJIT_TEST_SECONDS", 6))
# Model positions times residues of a file of sequences, unless a sequence alone has more.
CELLS = 10**12 if "HMMJIT_TEST_ALL" in os.environ else 3 * 10**7
MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "M1.hmm", "MADE1.hmm", "ecori.hmm", "PSE.hmm", "3box.hmm"]
FORMATS = ["Stockholm", "pfam", "A2M", "afa", "psiblast", "selex", "clustal", "clustallike", "phylip", "phylips"]


def length_of(model):
    return int(re.search(rb"\nLENG +(\d+)", read(model))[1])


@unittest.skipIf(scenario.hmmsearch_missing() or shutil.which("hmmalign") is None,
                 "hmmalign, hmmbuild, hmmemit or hmmer-examples not installed")
class AgainstHmmalign(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.random, self.compared = random.Random(SEED), 0
        self.models = [example_model(name, self.folder) for name in MODELS]

    def compare(self, options, model, sequences):
        want = run(["hmmalign"] + options + [model, sequences])
        got = run([scenario.program, "align"] + options + [model, sequences])
        if want.returncode != 0:
            self.assertEqual(got.returncode, 3, (options, model, sequences, want.stderr, got.stderr))
            return
        self.compared += 1
        self.assertEqual(got.returncode, 0, (options, model, sequences, got.stderr))
        expected, actual = (text.decode().split("\n") for text in (want.stdout, got.stdout))
        if expected[0].startswith("EASEL ("):
            self.assertEqual(actual[0], "EASEL (0.49) multiple sequence alignment")
            expected[0] = actual[0]
        if expected != actual:
            self.fail(f"hmmalign {options} {model} {sequences}: {first_difference(expected, actual)}")

    def emitted(self, model):
        """Sequences with no, one or several domains, and unusual ones."""
        rng = self.random
        made = run(["hmmemit", "--seed", str(rng.randrange(1, 2**31)), "-N", "12", model])
        nucleic = b"ALPH  amino" not in read(model)
        letters = "ACGT" if nucleic else "ACDEFGHIKLMNPQRSTVWY"
        odd = "RYMKSWHBVDN._~" if nucleic else "XBZJOU*._~"
        # hmmemit finds some of the recorded models "bad".
        domains = [record[2].upper() for record in scenario.fasta_records(made.stdout.decode())] or [letters]

        def noise(most):
            return "".join(rng.choices(letters, k=rng.randrange(most + 1)))

        records, room = [], CELLS // length_of(model)
        for number in range(rng.choice([1, 2, 5, 40])):
            parts = [noise(rng.choice([0, 5, 200]))]
            for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 5, 20])):
                if sum(map(len, parts)) > room:
                    break
                domain = rng.choice(domains)
                begin = rng.randrange(len(domain) or 1) if rng.random() < 0.3 else 0
                parts += [domain[begin:], noise(rng.choice([0, 3, 60]))]
            residues = list("".join(parts))
            for _ in range(len(residues) // 30 if rng.random() < 0.4 else 0):
                residues[rng.randrange(len(residues))] = rng.choice(letters + odd)
            name = rng.choice([f"s{number}", "twice", f"sequence_{number}_" + "x" * rng.randrange(30)])
            records.append([name, " ".join(["emitted"] * rng.randrange(3)), "".join(residues)])
            room -= len(residues)
            if room < 0:
                break
        path = self.path("emitted.fasta")
        scenario.write_fasta(path, records)
        return path

    def own_model(self, model):
        """An emitted alignment and its model."""
        rng = self.random
        source = self.path("source.sto")
        made = run(["hmmemit", "-a", "--seed", str(rng.randrange(1, 2**31)), "-N", str(rng.choice([1, 4, 30])), model])
        text = made.stdout.decode()
        if rng.random() < 0.5:
            text = text.replace("# STOCKHOLM 1.0\n", "# STOCKHOLM 1.0\n#=GF ID own\n", 1)
        names = sorted({line.split()[0] for line in text.split("\n") if line and line[0] not in "#/"})
        annotated = "".join(f"#=GS {name} AC A{n}\n#=GS {name} DE row {n}\n" for n, name in enumerate(names) if n % 2)
        if rng.random() < 0.5:  # a mask, a line in each block
            text = re.sub(r"(?m)^#=GC RF(.*)",
                          lambda line: line[0] + "\n#=GC MM" + re.sub(r"\S", lambda _: rng.choice("m..."), line[1]), text)
        head, _, body = text.partition("\n\n")
        self.write(source, head + "\n" + annotated + "\n" + body)
        alphabet = "--" + re.search(rb"\nALPH +(\w+)", read(model))[1].decode().lower()  # hmmbuild cannot guess that of few residues
        built = run(["hmmbuild", alphabet, "--symfrac", str(rng.choice([0.2, 0.5, 0.9])), "--fragthresh", "0", self.path("own.hmm"), source])
        return (self.path("own.hmm"), source) if built.returncode == 0 else self.own_model(model)  # without consensus columns

    def test_formats(self):
        for model in (self.models[0], self.models[5]):
            model, source = self.own_model(model)
            sequences = self.emitted(model)
            for name in FORMATS:
                for options in ([], ["--trim"], ["--mapali", source]):
                    with self.subTest(model=model, format=name, options=options):
                        self.compare(["--outformat", name] + options, model, sequences)

    def test_random(self):
        end = time.time() + SECONDS
        while time.time() < end or self.compared == 0:
            model, options = self.random.choice(self.models), []
            if self.random.random() < 0.4:
                model, source = self.own_model(model)
                if self.random.random() < 0.7:
                    options += ["--mapali", source]
            if self.random.random() < 0.3:
                options.append("--trim")
            if self.random.random() < 0.3:
                options += ["--outformat", self.random.choice(FORMATS)]
            with self.subTest(model=model, options=options):
                self.compare(options, model, self.emitted(model))
        print(f"{self.compared} alignments compared")

    def test_recorded_data(self):
        shared = scenario.shared_folder()
        if shared is None:
            self.skipTest("models and sequences (shared/data) are not here; set HMMJIT_SHARED")

        def text(path):
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                return file.read()

        for part in ("data", "data/dna"):
            files = sorted(glob.glob(f"{shared}/{part}/hmm/**/*.hmm*", recursive=True))
            models = [(file, number) for file in files for number in range(text(file).count(b"\n//"))]
            sequences = sorted(glob.glob(f"{shared}/{part}/seq/*a.gz") + glob.glob(f"{shared}/{part}/seq/*.fasta"))
            for file, number in self.random.sample(models, min(3, len(models))):
                path, targets = self.path("recorded.hmm"), self.path("recorded.fasta")
                self.write(path, text(file).split(b"//\n")[number] + b"//\n")
                records = text(self.random.choice(sequences)).split(b"\n>")
                at, most = self.random.randrange(len(records)), min(3000, CELLS // 12 // length_of(path))
                self.write(targets, b"".join(b">" + record.lstrip(b">").strip()[:most] + b"\n" for record in records[at:at + 12]))
                for name in (targets, self.emitted(path)):
                    with self.subTest(model=file, number=number, sequences=name):
                        self.compare([], path, name)


if __name__ == "__main__":
    scenario.main()
