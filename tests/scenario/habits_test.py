"""The program behaves like its users' other tools: messages with remedies, progress apart from output, compressed
outputs, early checks of cutoffs, outputs for the next step of a pipeline."""
import csv
import gzip
import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest
import urllib.parse

import scenario
from scenario import SharedInputs, example_model, hmmsearch, ok, read, result_lines, search

USAGE_ERROR, INPUT_ERROR = 2, 3


def hmmjit(*arguments, **keywords):
    return scenario.run([scenario.program] + list(arguments), **keywords)


def without_cutoffs(text):
    return b"".join(line for line in text.splitlines(True) if line[:2] not in (b"GA", b"TC", b"NC"))


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Habits(SharedInputs):
    def make_inputs(self):
        self.models = [example_model(name, self.folder) for name in ("fn3.hmm", "Pkinase.hmm", "globins4.hmm")]
        self.fn3, self.kinase, self.globins = self.models
        self.library = self.join_models(self.models)  # globins4 has no cutoffs
        self.records = scenario.emitted_targets(self.models, 7, per_model=12, decoys=8)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, self.records)

    def says(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        text = done.stderr.decode()
        self.assertTrue(text.startswith("hmmjit"), text)
        for word in words:
            self.assertIn(word, text)

    # ----- messages

    def test_lines_about_options_are_hmmers(self):
        filters = "--F1 0.03 --F2 0.002 --F3 0.00002 --nobias --nonull2 -Z 45 --domZ 3.7 --seed 3 --cpu 1 "
        search_options = "--tblout t --domtblout d --acc --noali " + filters
        by_e_value = "-E 5 --domE 5 --incE 0.1 --incdomE 0.1 --textw 130 "
        by_score = "-T 5 --domT 4.5 --incT 7 --incdomT 8 --notextw --max "
        fit = "--EmL 201 --EmN 100 --EvL 201 --EvN 100 --EfL 101 --EfN 201 --Eft 0.05 "
        matrix = "--popen 0.03 --pextend 0.5 --mx BLOSUM45 --qformat fasta --tformat fasta " + fit
        building = "--fragthresh 0.4 --wblosum --wid 0.5 --eset 3 --ere 0.5 --esigma 40 "
        scheme = "--wgsc --eclust --eid 0.5 --plaplace "
        query = self.path("query.fa")
        scenario.write_fasta(query, self.records[:1])
        alignment = os.path.join(scenario.EXAMPLES, "tutorial", "globins4.sto")
        nucleotides = os.path.join(scenario.EXAMPLES, "tutorial", "MADE1.sto")
        cases = [("hmmsearch", search_options + by_e_value + "-A a --pfamtblout p --tformat fasta", [self.fn3, self.targets]),
                 ("hmmsearch", by_score + "--restrictdb_n 2", [self.fn3, self.targets]),
                 ("hmmsearch", "--cut_tc -o {}", [self.fn3, self.targets]),
                 ("phmmer", search_options + by_e_value + matrix + "-A a --pfamtblout p", [query, self.targets]),
                 ("phmmer", by_score, [query, self.targets]),
                 ("jackhmmer", search_options + by_e_value + matrix + building + "-N 2 -A a --chkhmm c --chkali k",
                  [query, self.targets]),
                 ("jackhmmer", by_score + scheme + "-N 1", [query, self.targets]),
                 ("hmmscan", search_options + by_e_value + "--pfamtblout p --qformat fasta", [self.fn3, query]),
                 ("hmmscan", by_score.replace("-T 5", "-E 5"), [self.fn3, query]), ("hmmscan", "--cut_ga", [self.fn3, query]),
                 ("hmmbuild", building + fit + "-n name -O o --amino --symfrac 0.6 --seed 3 --cpu 1 --maxinsertlen 5",
                  ["made", alignment]), ("hmmbuild", scheme + "--popen 0.1 --pextend 0.3 --mx BLOSUM45 -o {}", ["made", alignment]),
                 ("hmmbuild", "--dna --w_beta 1e-5 --w_length 100 --popen 0.1 --seed 3", ["made", nucleotides])]
        ok(scenario.run(["hmmpress", "-f", self.fn3]))
        os.mkdir(self.path("links"))
        for program, options, files in cases:
            link = self.path(os.path.join("links", program))
            if not os.path.exists(link):
                os.symlink(scenario.program, link)
            with self.subTest(program=program, options=options):
                heads = []
                for path in (program, link):
                    command = [path] + options.format("out").split() + files
                    done = ok(subprocess.run(command, capture_output=True, cwd=self.folder))
                    text = read(self.path("out")) if "{}" in options else done.stdout
                    heads.append(text.decode().split("# - - -")[1:2])
                self.assertEqual(heads[0], heads[1])
                self.assertGreater(heads[0][0].count("\n"), 3)

    # ----- cutoffs

    def test_a_table_of_cutoffs_is_as_gathering_cutoffs_in_the_models(self):
        # KOfam's form; hmmsearch gets the same scores as GA lines.
        rules = {"fn3": ("28.5", "full"), "Pkinase": ("150.25", "domain"), "globins4": ("90", "full")}
        head = "knum\tthreshold\tscore_type\tprofile_type\tF-measure\tdefinition\n"
        table = self.write("ko_list", head + "".join(f"{name}\t{score}\t{kind}\tall\t0.9\ta b\n"
                                                     for name, (score, kind) in rules.items()))
        written = b""
        for path in self.models:
            text = without_cutoffs(read(path)).decode()
            score, kind = rules[re.search(r"^NAME +(\S+)", text, re.M)[1]]
            line = f"GA    {score} -999;" if kind == "full" else f"GA    -999 {score};"
            written += re.sub(r"^STATS LOCAL MSV", line + r"\n\g<0>", text, count=1, flags=re.M).encode()
        models = self.write("written.hmm", written.decode())
        tables = ["--tblout", "--domtblout", "--pfamtblout"]
        outputs = lambda tag: sum(([name, self.path(tag + name)] for name in tables), [])
        ok(hmmsearch(["--cut_ga", "-o", self.path("h")] + outputs("h") + [models, self.targets]))
        strip = lambda tag: result_lines(read(self.path(tag)))
        self.assertGreater(len(strip("h--tblout")), 10)
        for name, arguments in [("search", ["search"]), ("memory", ["search", "--mem", "300k"])]:
            with self.subTest(run=name):
                done = ok(hmmjit(*arguments, "--quiet", "--cut-file", table, "-o", self.path("o"), *outputs("o"),
                                 self.library, self.targets))
                for output in tables + [""]:
                    self.assertEqual(strip("o" + output), strip("h" + output), output)
        # As hmmscan, by itself and from parts.
        hmmjit("search", "--as", "hmmscan", "--cut_ga", "--domtblout", self.path("s1"), "-o", self.path("m1"), models,
               self.targets)
        hmmjit("search", "--as", "hmmscan", "--cut-file", table, "--domtblout", self.path("s2"), "-o", self.path("m2"),
               self.library, self.targets)
        hmmjit("scan", "--cut-file", table, "--domtblout", self.path("s3"), "-o", self.path("m3"), self.library,
               self.targets)
        self.assertGreater(len(strip("s1")), 10)
        self.assertEqual(strip("s2"), strip("s1"))
        self.assertEqual(strip("s3"), strip("s1"))
        database = self.path("d.hjdb")
        hmmjit("db", "build", "--quiet", "-o", database, self.targets)
        hmmjit("search", "--part", "1-2/2", "--part-file", self.path("p{}.part"), "--cut-file", table, self.library,
               database)
        done = hmmjit("merge", "--domtblout", self.path("md"), "-o", self.path("mo"), self.path("p1.part"),
                      self.path("p2.part"))
        self.assertEqual((done.returncode, strip("md")), (0, strip("h--domtblout")), done.stderr)
        other = self.write("other", head + "fn3 20\nPkinase 150.25 domain\nglobins4\t90\n")
        hmmjit("search", "--part", "2/2", "--part-file", self.path("q2.part"), "--cut-file", other, self.library,
               database)
        self.says(hmmjit("merge", "--domtblout", self.path("md"), self.path("p1.part"), self.path("q2.part")),
                  INPUT_ERROR, "model cutoffs")
        # Models without a threshold, by accession; unusable tables.
        some = self.write("some", "# comment\nPF00041\t28.5\nPF00069\t150.25\tdomain\nglobins4\t-\t-\n")
        self.says(hmmjit("search", "--cut-file", some, self.library, self.targets), INPUT_ERROR,
                  "1 of 3 models", "globins4", "--cut-missing skip")
        done = search(["--cut-file", some, "--cut-missing", "skip", "--tblout", self.path("o"), "-o", "/dev/null",
                       self.library, self.targets])
        self.says(done, 0, "globins4", "not searched")
        self.assertEqual(strip("o"), [line for line in strip("h--tblout") if " globins4 " not in line])
        for text, words in [("fn3\t1\nPkinase\tx1\n", ":2: the score"), ("fn3\t20\tfoo\n", ":1: "),
                            ("fn3\n", ":1: "), ("fn3 1\nfn3 2\n", ":2: a second score"), ("", "no model"),
                            ("fn3\tnan\nfn3\tinf\n", ":2: ")]:
            with self.subTest(table=text):
                self.says(hmmjit("search", "--cut-file", self.write("bad", text), self.library, self.targets),
                          INPUT_ERROR, words)
        self.says(hmmjit("search", "--cut-file", table, "--cut_ga", self.library, self.targets), USAGE_ERROR,
                  "--cut_ga")

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
        self.assertNotIn(progress, self.terminal(["--noali"]))
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.assertNotIn(progress, self.terminal(["--noali"], stdout=reader.stdin))
        reader.stdin.close()
        self.assertEqual(reader.wait(timeout=60), 0)

    # ----- outputs

    def test_outputs_are_compressed_when_their_names_say_so(self):
        outputs = ("-o", "-A", "--tblout", "--domtblout", "--tsv", "--json", "--a3m", "--gff", "--bed", "--fasta")

        def run(suffix):
            paths = {name: self.path(name.strip("-") + suffix) for name in outputs}
            done = ok(search([word for pair in paths.items() for word in pair] + [self.library, self.targets]))
            return paths
        plain = run(".txt")
        for suffix, tool in ((".gz", "gzip"), (".zst", "zstd")):
            if shutil.which(tool) is None:
                continue
            for name, path in run(suffix).items():
                done = ok(scenario.run([tool, "-dc", path]))
                text, want = done.stdout, read(plain[name])
                if name == "-o":
                    text, want = (b"\n".join(line for line in t.split(b"\n") if not line.startswith(b"#"))
                                  for t in (text, want))
                if name == "--json":
                    text, want = (t[:t.rindex(b'{"record":"run"')] for t in (text, want))
                if name in ("--tblout", "--domtblout"):
                    text, want = result_lines(text), result_lines(want)
                self.assertEqual(text, want, name)
                self.assertLess(os.path.getsize(path), os.path.getsize(plain[name]))
        self.assertGreater(len(gzip.decompress(read(self.path("json.gz")))), 1000)

    def test_an_output_for_each_query(self):
        queries = self.path("queries.fasta")
        scenario.write_fasta(queries, self.kinases(2))
        for command, options, first, kinds in (
                ("jackhmmer", ["-N", "2"], queries, ("-A", "--tblout", "--tsv", "-o")),
                ("phmmer", [], queries, ("-A", "--tblout", "--tsv", "-o")),
                ("search", [], self.library, ("-A", "--domtblout", "--json", "-o"))):
            with self.subTest(command=command):
                names = [self.path(f"{command}-{{query}}{kind}") for kind in kinds]
                ok(hmmjit(command, "--quiet", *options, *sum(map(list, zip(kinds, names)), []), first, self.targets))
                singles = self.models if command == "search" else []
                for record in [] if singles else self.kinases(2):
                    singles.append(self.path("single-" + record[0].replace("/", "_")))
                    scenario.write_fasta(singles[-1], [record])
                for single in singles:
                    query = re.search(r"^NAME +(\S+)|^>(\S+)", read(single).decode(), re.M)
                    query = (query[1] or query[2]).replace("/", "_")
                    alone = [self.path("alone" + kind) for kind in kinds]
                    hmmjit(command, "--quiet", *options, *sum(map(list, zip(kinds, alone)), []), single, self.targets)
                    for name, path in zip(names, alone):
                        lines, want = (([line.replace(f"{command}-{query}-A", "alone-A")
                                         for line in result_lines(read(place))]) for place in
                                       (name.replace("{query}", query), path))
                        if path.endswith("--json"):
                            lines, want = ([line for line in some if '"record":"run"' not in line]
                                           for some in (lines, want))
                            lines = [re.sub(r'"(index|model_index)":\d+', "", line) for line in lines]
                            want = [re.sub(r'"(index|model_index)":\d+', "", line) for line in want]
                        if path.endswith("--tsv"):
                            strip = lambda rows: [re.sub(r"^((?:[^\t]*\t){7})\d+", r"\1", row) for row in rows]
                            lines, want = strip(lines), strip(want)
                        self.assertEqual(lines, want, name)
        scenario.write_fasta(queries, self.kinases(1) * 2)
        self.says(hmmjit("phmmer", "-o", self.path("{query}.x"), queries, self.targets), INPUT_ERROR,
                  "two queries are called")
        scenario.write_fasta(queries, [[name, "", "ACDEFGHIKLMNPQRSTVWY"] for name in ("a/b", "a_b")])  # of one file
        self.says(hmmjit("phmmer", "-o", self.path("{query}.x"), queries, self.targets), INPUT_ERROR,
                  "two queries are called a_b")
        scenario.write_fasta(self.path("own"), [["own", "", "ACDEFGHIKLMNPQRSTVWY"]])
        self.says(hmmjit("phmmer", "-o", self.path("{query}"), self.path("own"), self.targets), USAGE_ERROR, "this is the")

    def kinases(self, count):
        """The best targets of one model."""
        ok(search(["-o", "/dev/null", "--tblout", self.path("kinases"), self.kinase, self.targets]))
        names = [line.split()[0].decode() for line in read(self.path("kinases")).splitlines() if line[:1] != b"#"]
        return [record for record in self.records if record[0] in names[:count]]

    def test_alignments_of_the_best_targets(self):
        """--seq-limit n: -A equals HMMER's for the n best targets alone; --a3m is a prefix of that without the limit."""
        query = self.path("query.fasta")
        scenario.write_fasta(query, self.kinases(1))
        fixed = ["-Z", "500", "--domZ", "40"]
        for command, first, options in (("search", self.fn3, []), ("phmmer", query, []),
                                        ("jackhmmer", query, ["-N", "1"])):
            theirs = {"search": "hmmsearch"}.get(command, command)
            if shutil.which(theirs) is None:
                continue
            ok(hmmjit(command, "--quiet", *options, *fixed, "--a3m", self.path("all.a3m"), "-A",
                      self.path("all.sto"), "-o", self.path("all.out"), first, self.targets))
            names = []
            for line in read(self.path("all.a3m")).decode().splitlines():
                if re.match(r">\S+/\d+-\d+", line):
                    names.append(line[1:].split()[0].rpartition("/")[0])
            names = list(dict.fromkeys(names))  # best first
            self.assertGreater(len(names), 5)
            for limit in (1, 5, 10**6):
                with self.subTest(command=command, limit=limit):
                    ok(hmmjit(command, "--quiet", *options, *fixed, "--seq-limit", str(limit), "--a3m", self.path("some.a3m"),
                              "-A", self.path("some.sto"), "-o", self.path("some.out"), first, self.targets))
                    best = self.path("best.fasta")
                    scenario.write_fasta(best, [record for record in self.records if record[0] in names[:limit]])
                    ok(scenario.run([theirs, "--cpu", "0", *options, *fixed, "-A", self.path("want.sto"), first, best]))
                    sto, wanted = ([line for line in read(self.path(name)).split(b"\n")
                                    if not line.startswith(b"#=GF AU")] for name in ("some.sto", "want.sto"))
                    self.assertEqual(sto, wanted)
                    some, whole = read(self.path("some.a3m")), read(self.path("all.a3m"))
                    self.assertTrue(whole.startswith(some))
                    self.assertEqual(limit == 10**6, some == whole)
                    # Only the comment that counts the rows of -A changes.
                    out, all_out = (result_lines(read(self.path(name))) for name in ("some.out", "all.out"))
                    self.assertEqual(out, all_out)

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
