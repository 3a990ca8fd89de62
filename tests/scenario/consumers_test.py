"""Programs that read HMMER's output read hmmjit's, called by HMMER's names, with the same result: each consumer parses
what HMMER 3.3.2 wrote and what hmmjit wrote, and what it made of both is compared.

Consumers are those of PyPI in the environment HMMJIT_TEST_CONSUMERS, and barrnap and BioPerl of Debian, all installed by
tools/install_packages.sh --consumers. A test says that nothing was read where one of them is not installed.
"""
import gzip
import importlib
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
import types
import unittest

ENVIRONMENT = os.environ.pop("HMMJIT_TEST_CONSUMERS", "")
if os.access(os.path.join(ENVIRONMENT, "bin", "python3"), os.X_OK):
    python = os.path.join(ENVIRONMENT, "bin", "python3")
    os.execv(python, [python, "-B"] + sys.argv)

import scenario
from scenario import ScratchFolder, example_model, ok, read

REPLACED = ("hmmsearch", "hmmscan", "phmmer", "jackhmmer", "hmmbuild", "hmmalign", "nhmmer", "nhmmscan")
ABSENT = ("hmmpress", "hmmfetch", "hmmstat", "esl-sfetch")

# Prints all results, hits and HSPs of BioPerl.
BIOPERL = r"""
use Bio::SearchIO;
my $in = Bio::SearchIO->new(-format => 'hmmer', -file => $ARGV[0]);
while (my $r = $in->next_result) {
  print join("\t", 'result', $r->algorithm, $r->query_name, $r->query_length, $r->query_accession), "\n";
  while (my $h = $r->next_hit) {
    print join("\t", 'hit', $h->name, $h->description, $h->significance, $h->raw_score), "\n";
    while (my $p = $h->next_hsp) {
      print join("\t", 'hsp', $p->evalue, $p->score, $p->start('query'), $p->end('query'), $p->start('hit'),
                 $p->end('hit'), $p->query_string, $p->homology_string, $p->hit_string), "\n";
    }
  }
}
"""


def plain(value):
    """A parser's object as nested tuples of its public values."""
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        return value
    if isinstance(value, dict):
        return tuple(sorted((str(key), plain(each)) for key, each in value.items()))
    if not hasattr(value, "__dict__") or "Seq" in type(value).__name__:
        return str(value)
    items = tuple(plain(each) for each in value) if hasattr(value, "__iter__") else ()
    fields = tuple((key, plain(each)) for key, each in sorted(vars(value).items())
                   if not key.startswith("__") and key not in ("_hit", "_hsp", "version"))
    return type(value).__name__, fields, items


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Consumers(ScratchFolder):
    def setUp(self):
        super().setUp()
        self.models = [example_model(name, self.folder) for name in ("fn3.hmm", "Pkinase.hmm", "globins4.hmm")]
        self.library = self.join_models(self.models)
        self.records = scenario.emitted_targets(self.models, 11, per_model=8, decoys=20)
        self.targets = self.path("targets.faa")
        scenario.write_fasta(self.targets, self.records)
        self.queries = self.path("queries.faa")
        scenario.write_fasta(self.queries, [record for record in self.records if record[0].startswith("emitted")][:3])
        ok(scenario.run(["hmmpress", self.library]))
        self.links = self.path("links")
        os.mkdir(self.links)
        for name in REPLACED + ABSENT:
            os.symlink(scenario.program, os.path.join(self.links, name))

    def link(self, name):
        return os.path.join(self.links, name)

    def package(self, name):
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            self.skipTest(f"NOTHING READ: {name} is not installed (tools/install_packages.sh --consumers)")
        return importlib.import_module(name)

    def both(self, name, arguments, outputs=("report", "tblout", "domtblout")):
        """Runs HMMER's program and the link with its name; returns the folders of their outputs."""
        folders = []
        for program in (shutil.which(name), self.link(name)):
            folder = self.path(f"{name}_{'hmmjit' if program.startswith(self.links) else 'hmmer'}")
            os.makedirs(folder, exist_ok=True)
            options = []
            for output in outputs:
                options += ["-o" if output == "report" else "-A" if output == "sto" else "--" + output,
                            os.path.join(folder, output)]
            ok(scenario.run([program, "--cpu", "1"] + options + list(arguments)))
            folders.append(folder)
        return folders

    def runs(self):
        return [("hmmsearch", [self.library, self.targets]), ("hmmscan", [self.library, self.queries]),
                ("phmmer", [self.queries, self.targets]), ("jackhmmer", ["-N", "2", self.queries, self.targets])]

    # ----- names and versions

    def test_names_in_banners(self):
        stockholm = os.path.join(scenario.EXAMPLES, "tutorial", "fn3.sto")
        for name in REPLACED:
            with self.subTest(program=name):
                head = [scenario.run([program, "-h"]).stdout.decode().split("\n") for program in
                        (shutil.which(name), self.link(name))]
                self.assertEqual(head[0][0], head[1][0])  # "# hmmsearch :: search profile(s) ..."
                self.assertRegex(head[1][1], r"^# HMMER 3\.4 \(Aug 2023\); http://hmmer\.org/$")
                self.assertRegex(head[1][2], r"^# Computed by hmmjit \d+\.\d+\.\d+,$")
                self.assertRegex(head[1][4], rf"^Usage: {name} ")  # as many lines as in HMMER's reports
                # padloc and others take the version from `-h | grep HMMER`.
                self.assertEqual(sum("HMMER" in line for line in head[1]), 1)
                # BUSCO and nf-core parse the version like this.
                self.assertGreaterEqual(float(head[1][1].split()[2][:3]), 3.1)
                version = scenario.run([self.link(name), "--version"])
                self.assertRegex(version.stdout.decode(), r"^hmmjit \d")
                own = scenario.run([scenario.program, {"hmmsearch": "search", "hmmscan": "scan", "hmmbuild": "build",
                                                     "hmmalign": "align"}
                                    .get(name, name), "--hmmer-banner", "-h"])
                self.assertEqual(own.stdout.decode().split("\n"), head[1])
        for name, arguments in self.runs():  # cases/option_lines.txt compares those of reports
            hmmer, hmmjit = self.both(name, arguments)
            for output in ("tblout", "domtblout"):
                with self.subTest(program=name, output=output):
                    def comments(folder):
                        lines = [line for line in read(os.path.join(folder, output)).decode().split("\n")
                                 if line.startswith("#") and not line.startswith("# Date:")]
                        lines = [re.sub(r"3\.[34](\.2)? \((Nov 2020|Aug 2023)\)(; computed by hmmjit [\d.]+)?", "VERSION", line) for line in lines]
                        return [line.replace(folder, "F").replace(self.links + "/", "").replace(shutil.which(name), name) for line in lines]
                    self.assertEqual(comments(hmmer), comments(hmmjit))
        for name, arguments in self.runs() + [("hmmbuild", [self.path("x.hmm"), stockholm])]:
            with self.subTest(program=name, option="--seed 0"):
                lines = [[line for line in scenario.run([program, "--seed", "0"] + arguments).stdout.decode().split("\n")
                          if line.startswith("# random number seed")] for program in (shutil.which(name), self.link(name))]
                self.assertEqual(lines[0], lines[1])
                self.assertEqual(len(lines[0]), 2)

    # ----- parsers

    def test_biopython(self):
        search_io = self.package("Bio.SearchIO")
        for name, arguments in self.runs():
            for output, form in (("report", "hmmer3-text"), ("tblout", "hmmer3-tab"),
                                 ("domtblout", {"hmmscan": "hmmscan3-domtab", "phmmer": "phmmer3-domtab"}
                                  .get(name, "hmmsearch3-domtab"))):
                if (name, output) == ("jackhmmer", "report"):
                    continue  # Biopython has no reader for rounds
                with self.subTest(program=name, form=form):
                    want, got = ([plain(result) for result in search_io.parse(os.path.join(folder, output), form)]
                                 for folder in self.both(name, arguments))
                    self.assertGreater(len(want), 0)
                    want, got = (re.sub(r"[^' ]*_(hmmer|hmmjit)/", "", repr(each)) for each in (want, got))
                    self.assertEqual(want.replace("3.3.2 (Nov 2020)", "3.4 (Aug 2023)"), got)
        # With another program name, Biopython would set these to None.
        hits = next(search_io.parse(os.path.join(self.path("hmmsearch_hmmjit"), "report"), "hmmer3-text"))
        self.assertTrue(all(isinstance(hsp.hit_start, int) and isinstance(hsp.query_start, int) for hsp in hits.hsps))

    def test_bioperl(self):
        if shutil.which("perl") is None or scenario.run(["perl", "-MBio::SearchIO::hmmer", "-e", "1"]).returncode:
            self.skipTest("NOTHING READ: BioPerl is not installed (tools/install_packages.sh --consumers)")
        for name, arguments in self.runs()[:2]:  # BioPerl reads no other report
            with self.subTest(program=name):
                want, got = (scenario.run(["perl", "-e", BIOPERL, os.path.join(folder, "report")])
                             for folder in self.both(name, arguments))
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertGreater(want.stdout.count(b"\nhsp\t"), 3)
                self.assertEqual(want.stdout, got.stdout)

    def test_barrnap(self):
        """rRNA genes of each kingdom, emitted from barrnap's models on both strands; with the recorded data, of genomes."""
        if shutil.which("barrnap") is None:
            self.skipTest("NOTHING READ: barrnap is not installed (tools/install_packages.sh --consumers)")
        runs = []
        for kingdom in ("bac", "arc", "euk", "mito"):
            emitted = scenario.run(["hmmemit", "-N", "1", "--seed", "3", f"/usr/share/barrnap/db/{kingdom}.hmm"]).stdout
            genes = ["".join(record.split("\n")[1:]).upper().replace("U", "T") for record in emitted.decode().split(">")[1:]]
            spacer = "".join(random.Random(kingdom).choices("ACGT", k=1500))
            genome = spacer.join([""] + genes[:-1] + [genes[-1][::-1].translate(str.maketrans("ACGT", "TGCA")), ""])
            runs.append((kingdom, self.path(kingdom + ".fa")))
            scenario.write_fasta(runs[-1][1], [["genome", "", genome]])
        recorded = os.path.join(scenario.shared_folder() or "", "data/dna/seq/hpylori_G27.fa.gz")
        if os.path.exists(recorded):
            runs.append(("bac", self.path("hpylori.fa")))
            with gzip.open(recorded) as source, open(runs[-1][1], "wb") as copy:
                shutil.copyfileobj(source, copy)
        for kingdom, genome in runs:
            with self.subTest(kingdom=kingdom, genome=os.path.basename(genome)):
                want, got = (subprocess.run(["barrnap", "--quiet", "--kingdom", kingdom, genome], capture_output=True,
                                            env=dict(os.environ, PATH=path))
                             for path in (os.environ["PATH"], self.links + ":" + os.environ["PATH"]))
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertGreater(want.stdout.count(b"rRNA"), 1)
                self.assertEqual(want.stdout, got.stdout)

    def test_checkm(self):
        hmmer = self.package("checkm.hmmer")
        for output, mode in (("tblout", "tbl"), ("domtblout", "dom")):
            parsed = []
            for folder in self.both("hmmsearch", [self.library, self.targets]):
                with open(os.path.join(folder, output)) as file:
                    parser = hmmer.HMMERParser(file, mode=mode)
                    parsed.append([vars(hit) for hit in iter(parser.next, None)])
            self.assertGreater(len(parsed[0]), 10)
            self.assertEqual(*parsed)

    def test_integron_finder(self):
        self.package("integron_finder")
        read_hmm = importlib.import_module("integron_finder.hmm").read_hmm
        proteins = types.SimpleNamespace(get_description=lambda name: (name, 1, 1, 99))  # strand and place in the genome
        want, got = (read_hmm("replicon", proteins, os.path.join(folder, "report"), None, evalue=1., coverage=0.5)
                     for folder in self.both("hmmsearch", [self.models[0], self.targets]))
        self.assertGreater(len(want), 3)
        self.assertEqual(want.to_csv(), got.to_csv())

    def test_macsyfinder(self):
        self.package("macsylib")
        macsyfinder = os.path.join(os.path.dirname(sys.executable), "macsyfinder")
        package = self.path("models/Test")
        os.makedirs(os.path.join(package, "profiles"))
        os.makedirs(os.path.join(package, "definitions"))
        for path in self.models:
            shutil.copy(path, os.path.join(package, "profiles"))
        self.write(os.path.join(package, "metadata.yml"),
                   "maintainer:\n  name: nobody\n  email: nobody@example.org\nshort_desc: test\nvers: 1.0\n")
        with open(os.path.join(package, "definitions", "All.xml"), "w") as file:
            genes = "".join(f'<gene name="{os.path.basename(path)[:-4]}" presence="{presence}"/>'
                            for path, presence in zip(self.models, ("mandatory", "accessory", "accessory")))
            file.write('<model inter_gene_max_space="5" min_mandatory_genes_required="1" min_genes_required="1" '
                       f'vers="2.0">{genes}</model>')
        found = []
        for name in (shutil.which("hmmsearch"), self.link("hmmsearch")):
            out = self.path(f"out{len(found)}")
            ok(scenario.run([macsyfinder, "--hmmer", name, "--db-type", "ordered_replicon", "--models-dir", self.path("models"),
                             "--models", "Test", "all", "--sequence-db", self.targets, "-o", out, "-w", "1", "--mute"]))
            tables = {}
            for table in sorted(os.listdir(out)):
                if table.endswith(".tsv"):
                    tables[table] = [line for line in read(os.path.join(out, table)).decode().split("\n")
                                     if not line.startswith("#")]
            found.append(tables)
        self.assertGreater(len(found[0]["all_systems.tsv"]), 10)
        self.assertEqual(*found)

    def test_pyhmmer(self):
        pyhmmer = self.package("pyhmmer")
        alignment = os.path.join(scenario.EXAMPLES, "tutorial", "globins4.sto")
        digests = []
        for program in (shutil.which("hmmbuild"), self.link("hmmbuild")):
            model = self.path("m.hmm")
            ok(scenario.run([program, "--cpu", "1", model, alignment]))
            with pyhmmer.plan7.HMMFile(model) as file, pyhmmer.easel.SequenceFile(self.targets, digital=True) as targets:
                hmm = file.read()
                hits = next(pyhmmer.hmmsearch(hmm, targets.read_block(), cpus=1))
            digests.append((hmm.name, hmm.M, hmm.checksum, [(hit.name, hit.score, hit.evalue) for hit in hits]))
        self.assertGreater(len(digests[0][3]), 3)
        self.assertEqual(*digests)
        rows = []
        for folder in self.both("hmmsearch", [self.models[0], self.targets], outputs=("sto",)):
            with pyhmmer.easel.MSAFile(os.path.join(folder, "sto"), digital=False) as file:
                msa = file.read()
                rows.append((list(msa.names), list(msa.alignment)))
        self.assertGreater(len(rows[0][0]), 3)
        self.assertEqual(*rows)


if __name__ == "__main__":
    scenario.main()
