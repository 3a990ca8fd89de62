"""Machine-readable outputs agree with hmmsearch's tables, those of a scan with those of a search."""
import base64
import gzip
import html.parser
import json
import re
import unittest

import scenario
from scenario import SEED, SharedInputs, example_model, ok, printed, read, result_lines, search

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm", "Pkinase.hmm"]
USAGE_ERROR = 2
VOID = {"meta", "input", "rect", "br", "link", "img"}


def report(arguments, **keywords):
    return scenario.run([scenario.program, "report"] + arguments, **keywords)


class Page(html.parser.HTMLParser):
    """Checks the nesting of elements; collects texts and references to other resources."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.references, self.texts = [], [], [], []
        self.counts = {}

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "data", "srcset") or \
                    name.startswith("on"):
                self.references.append((tag, name, value))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        self.texts.append(data)


def page_data(text):
    """The data of a page of results, and the alignments of its domains."""
    packed = [re.search(f'id="{name}">([^<]*)<', text).group(1) for name in ("data", "alignments")]

    def unpack(part):
        return json.loads(gzip.decompress(base64.b64decode(part)))
    return unpack(packed[0]), [item for part in packed[1].split() for item in unpack(part)]


def page_targets(data):
    """Targets with their hits and domains, assembled from the columns."""
    def rows(name):
        columns = data[name]
        return (dict(zip(columns, values)) for values in zip(*columns.values()))
    hits, domains = rows("hits"), rows("domains")
    for target in rows("targets"):
        target["hits"] = [next(hits) for _ in range(target["hits"])]
        for hit in target["hits"]:
            hit["domains"] = [next(domains) for _ in range(hit["domains"])]
        yield target


def page_domains(data):
    return [(target, hit, domain) for target in page_targets(data) for hit in target["hits"]
            for domain in hit["domains"]]


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class ResultsFolder(SharedInputs):
    """A search of models and targets with names and descriptions that are hard to write."""

    def make_inputs(self):
        models = [example_model(name, self.folder) for name in MODELS]
        self.library = self.join_models(models)
        self.records = scenario.emitted_targets(models, SEED, per_model=25, decoys=150)
        for number, record in enumerate(self.records):
            record[0] += ["", "<b>&amp;", "\"q\"", "'", "\\t", "\xe9"][number % 6]
            if number % 7 == 0:
                record[1] = "</script><img src=x onerror=alert(1)> & \"more\""
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, self.records)

    def run_search(self, options, targets=None):
        paths = {name: self.path("result." + name) for name in
                 ("out", "tbl", "domtbl", "tsv", "target_tsv", "json", "a3m", "sto")}
        ok(search(["-o", paths["out"], "--tblout", paths["tbl"], "--domtblout", paths["domtbl"],
                   "--tsv", paths["tsv"], "--target-tsv", paths["target_tsv"], "--json", paths["json"], "--a3m", paths["a3m"],
                   "-A", paths["sto"]] + options + [self.library, targets or self.targets]))
        return paths

    def records_of(self, path):
        lines = [json.loads(line) for line in read(path).decode().splitlines()]
        self.assertEqual(lines[-1]["record"], "run")
        self.assertEqual({line["record"] for line in lines[:-1]}, {"model", "target"})
        return lines

    def nasty_run(self):
        """A run with target descriptions that confuse readers of tables and JSON; returns the paths, the expected
        (name, description) of each row, and the records."""
        marks = ['"quoted" start', '"only one', 'mid "quote" here', "5'-3' exonuclease", "back\\slash \\t",
                 "# no comment", "a, b; c", "=1+1", "tab\there", 'end"', "NULL", "", "-", "1e5", '""']
        records = [[f"t{number}_{name}", marks[number % len(marks)], residues]
                   for number, (name, _, residues) in enumerate(self.records)]
        targets = self.path("nasty.fasta")
        scenario.write_fasta(targets, records)
        paths = self.run_search([], targets)
        lines = self.records_of(paths["json"])
        rows = [(target["name"], (target["description"] or "").replace("\t", " "))
                for target in lines if target["record"] == "target"
                for _ in target["domains"]]
        self.assertTrue(set(rows) <= {(name, text.replace("\t", " ")) for name, text, _ in records})
        self.assertGreater(len({text for _, text in rows}), 12)
        return paths, rows, lines


class Outputs(ResultsFolder):
    def test_json_and_tsv_print_as_the_domain_table(self):
        for options in ([], ["-E", "1e-5", "--domE", "1e-3", "--incE", "1e-20"], ["-T", "10", "--domT", "5", "-Z", "9"],
                        ["--domT", "60"]):
            paths = self.run_search(options)
            table = [line.split(None, 22) for line in result_lines(read(paths["domtbl"])) if line]
            self.assertGreater(len(table), 20)
            lines = self.records_of(paths["json"])
            models = [line for line in lines if line["record"] == "model"]
            targets = [line for line in lines if line["record"] == "target"]
            rows = []
            for target in targets:
                model = models[target["model_index"]]
                self.assertEqual(model["name"], target["model"])
                for domain in target["domains"]:
                    rows.append([
                        target["name"], target["accession"] or "-", str(target["length"]),
                        model["name"], model["accession"] or "-", str(model["length"]),
                        "%.2g" % target["evalue"], printed(target["score"], 1),
                        printed(target["bias"], 1), str(domain["number"]),
                        str(len(target["domains"])), "%.2g" % domain["c_evalue"],
                        "%.2g" % domain["i_evalue"], printed(domain["score"], 1),
                        printed(domain["bias"], 1), str(domain["hmm_from"]), str(domain["hmm_to"]),
                        str(domain["ali_from"]), str(domain["ali_to"]), str(domain["env_from"]),
                        str(domain["env_to"]), printed(domain["accuracy"], 2),
                        target["description"] or "-"])
            table = [[field.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                      for field in row] for row in table]
            self.assertEqual(len(rows), len(table))
            for want, got in zip(table, rows):
                self.assertEqual(want, got)
            counts = [line.split()[10:16] for line in result_lines(read(paths["tbl"])) if line]
            self.assertEqual(counts, [[printed(target["expected_domains"], 1)] + [
                str(target[key]) for key in ("regions", "clustered", "overlaps", "envelopes", "domains_found")] for target in targets])
            summary = lines[-1]
            self.assertEqual(summary["domains_reported"], len(rows))
            self.assertEqual(summary["targets_reported"], len(targets))
            self.assertEqual(summary["targets_included"], sum(target["included"] for target in targets))
            self.assertEqual(summary["models"], len(models))
            self.assertEqual(summary["targets"], len(self.records))
            self.assertEqual(sum(model["targets_reported"] for model in models), len(targets))
            passed = models[0]["passed"]
            self.assertGreaterEqual(passed["msv"], passed["forward"])

            text = read(paths["tsv"]).decode("utf-8", "replace").split("\n")
            self.assertEqual(text.pop(), "")
            head = text[0].split("\t")
            found = [dict(zip(head, line.split("\t"))) for line in text[1:]]
            for row in found:
                self.assertEqual(len(row), len(head))
            self.assertEqual(len(found), len(rows))
            at = iter(found)
            for target in targets:
                for domain in target["domains"]:
                    row = next(at)
                    self.assertEqual(float(row["evalue"]), target["evalue"])
                    self.assertEqual(float(row["c_evalue"]), domain["c_evalue"])
                    self.assertEqual(float(row["i_evalue"]), domain["i_evalue"])
                    self.assertEqual(float(row["domain_score"]), domain["score"])
                    self.assertEqual(float(row["accuracy"]), domain["accuracy"])
                    self.assertEqual(int(row["target_index"]), target["index"])
                    self.assertEqual(int(row["env_to"]), domain["env_to"])
                    self.assertEqual(row["domain_included"], str(int(domain["included"])))
                    covered = (domain["hmm_to"] - domain["hmm_from"] + 1) / int(row["model_length"])
                    self.assertEqual(float(row["model_coverage"]), covered)
                    self.assertEqual(domain["model_coverage"], covered)
            # The table of targets has a row for each, including those without a reported domain.
            lines = read(paths["target_tsv"]).decode("utf-8", "replace").rstrip("\n").split("\n")
            head = lines[0].split("\t")
            by_target = [dict(zip(head, line.split("\t"))) for line in lines[1:]]
            self.assertEqual([(int(row["target_index"]), row["model"], float(row["evalue"]), int(row["domains"]))
                              for row in by_target],
                             [(target["index"], target["model"], target["evalue"], len(target["domains"]))
                              for target in targets])
            if options == ["--domT", "60"]:
                self.assertTrue(any(row["domains"] == "0" for row in by_target))

    def test_coverage_is_a_threshold(self):
        whole = self.records_of(self.run_search([])["json"])
        paths = self.run_search(["--min-coverage", "0.7"])
        want = {(target["model_index"], target["index"]): [domain["i_evalue"] for domain in target["domains"]
                                                          if domain["model_coverage"] >= 0.7]
                for target in whole if target["record"] == "target"}
        got = {(target["model_index"], target["index"]): [domain["i_evalue"] for domain in target["domains"]]
               for target in self.records_of(paths["json"]) if target["record"] == "target"}
        self.assertEqual(got, want)
        self.assertGreater(sum(map(len, want.values())), 10)
        self.assertLess(sum(map(len, want.values())), whole[-1]["domains_reported"])
        self.assertEqual(len([line for line in result_lines(read(paths["domtbl"])) if line]),
                         sum(map(len, want.values())))

    def test_a_key_of_json_has_one_type(self):
        paths, rows, lines = self.nasty_run()
        kinds = {}

        def note(place, value):
            if isinstance(value, dict):
                for key, member in value.items():
                    note(place + "." + key, member)
            elif isinstance(value, list):
                for member in value:
                    note(place + "[]", member)
            elif value is not None:
                kind = type(value).__name__
                kinds.setdefault(place, set()).add({"int": "number", "float": "number"}.get(kind, kind))
        for line in lines:
            for key, value in line.items():  # all records side by side, as a data frame holds them
                note(key, value)
        self.assertGreater(len(kinds), 40)
        self.assertEqual({key: kind for key, kind in kinds.items() if len(kind) > 1}, {})

    def test_alignments_fit_their_sequences(self):
        residues = [record[2].upper() for record in self.records]
        lines = self.records_of(self.run_search([])["json"])
        count = 0
        for target in lines:
            if target["record"] != "target":
                continue
            for domain in target["domains"]:
                alignment = domain["alignment"]
                widths = {len(alignment[key]) for key in ("model", "match", "target", "pp")}
                self.assertEqual(len(widths), 1)
                letters = alignment["target"].replace("-", "").upper()
                self.assertEqual(letters, residues[target["index"]][domain["ali_from"] - 1:
                                                                    domain["ali_to"]])
                self.assertEqual(len(alignment["model"].replace(".", "")),
                                 domain["hmm_to"] - domain["hmm_from"] + 1)
                count += 1
        self.assertGreater(count, 50)
        without = self.records_of(self.run_search(["--noali"])["json"])
        self.assertFalse(any("alignment" in domain for target in without
                             for domain in target.get("domains", [])))

    def test_a3m_holds_the_included_domains(self):
        paths = self.run_search(["--noali"])
        blocks = read(paths["a3m"]).decode("utf-8", "replace").split("#")[1:]
        blocks = [block for block in blocks if "_consensus" in block]
        included = {}
        for target in self.records_of(paths["json"]):
            if target["record"] == "target":
                kept = [f'{target["name"]}/{d["ali_from"]}-{d["ali_to"]}'
                        for d in target["domains"] if d["included"]]
                included.setdefault(target["model"], []).extend(kept)
        included = {name: kept for name, kept in included.items() if kept}
        models = {model["name"]: model["length"] for model in self.records_of(paths["json"])
                  if model["record"] == "model"}
        self.assertEqual(len(blocks), len(included))
        for block in blocks:
            name = block.split(None, 1)[0]
            rows = [row.split("\n") for row in block.split("\n>")[1:]]
            self.assertEqual([row[0].split(" ")[0] for row in rows[1:]], included[name])
            for row in rows:
                columns = sum(c == "-" or c.isupper() for c in row[1])
                self.assertEqual(columns, models[name], row[0])
            self.assertTrue(all(c.isalpha() or c == "-" for row in rows for c in row[1]))

    def test_scan_has_the_records_of_a_search(self):
        names = ("tsv", "target-tsv", "json", "gff", "bed", "fasta", "domfasta")
        for options in ([], ["--resolve-overlaps"], ["--noali", "--incdomE", "1e-6"]):
            for command in ("search", "scan"):
                outputs = [word for name in names for word in ("--" + name, self.path(f"{command}.{name}"))]
                done = scenario.run([scenario.program, command, "-o", "/dev/null", "-Z", "6", "--domZ", "9", *options, *outputs,
                                     self.library, self.targets])
                self.assertEqual(done.returncode, 0, done.stderr)
            search_has, scan_has = ({name: read(self.path(f"{command}.{name}")) for name in names}
                                    for command in ("search", "scan"))
            for name in ("gff", "bed", "fasta", "domfasta"):
                self.assertEqual(search_has[name], scan_has[name])
            for name in ("tsv", "target-tsv"):
                self.assertGreater(search_has[name].count(b"\n"), 100)
                self.assertEqual(sorted(search_has[name].splitlines()), sorted(scan_has[name].splitlines()))
            *records, run = [json.loads(line) for line in scan_has["json"].splitlines()]
            *wanted, wanted_run = [json.loads(line) for line in search_has["json"].splitlines()]
            models = {model["name"]: model for model in wanted if model["record"] == "model"}
            sequences = [record for record in records if record["record"] == "sequence"]
            self.assertEqual([sequence["length"] for sequence in sequences], [len(record[2]) for record in self.records])
            hits = [record for record in records if record["record"] == "target"]
            for hit in hits:
                self.assertEqual((hit.pop("model_accession"), hit.pop("model_length")),
                                 (models[hit["model"]]["accession"], models[hit["model"]]["length"]))
            by_pair = lambda hit: (hit["model_index"], hit["index"])
            self.assertEqual(sorted(hits, key=by_pair),
                             sorted((hit for hit in wanted if hit["record"] == "target"), key=by_pair))
            for name in ("models", "targets", "targets_reported", "domains_reported", "domains_included"):
                self.assertEqual(run[name], wanted_run[name])
            # What passed is counted by sequence here, and there by model.
            for name in ("msv", "bias", "viterbi", "forward"):
                self.assertEqual(sum(sequence["passed"][name] for sequence in sequences),
                                 sum(model["passed"][name] for model in models.values()))
        pages = []
        for source in ("json", "tsv"):
            done = report([self.path("scan." + source), "-o", self.path("page.html")])
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            data, _ = page_data(read(self.path("page.html")).decode())
            pages.append(sorted((target["name"], data["models"]["name"][hit["model"]], domain["score"])
                                for target, hit, domain in page_domains(data)))
        self.assertEqual(*pages)

    def test_report_page(self):
        paths = self.run_search([])
        lines = self.records_of(paths["json"])
        targets = {line["index"]: line for line in lines if line["record"] == "target"}
        domains = sum(len(line["domains"]) for line in lines if line["record"] == "target")
        for source in ("json", "tsv"):
            page_path = self.path("page.html")
            done = report([paths[source], "-o", page_path, "--title", "a <title> & more"])
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            text = read(page_path).decode("utf-8")  # strict
            page = Page()
            page.feed(text)
            page.close()
            self.assertEqual(page.problems, [])
            self.assertEqual(page.open, [])
            self.assertEqual(page.references, [])
            self.assertNotIn("img", page.counts)
            self.assertEqual(page.counts["script"], 3)  # data, alignments, and what draws them
            data, alignments = page_data(text)
            got = [(target, hit, domain) for target, hit, domain in page_domains(data)]
            self.assertEqual(len(got), domains)
            wanted = sorted([line["name"], line["model"], "%.9g" % line["evalue"],
                             domain["score"], domain["env_from"], line["description"] or ""]
                            for line in lines if line["record"] == "target"
                            for domain in line["domains"])
            self.assertEqual(sorted([target["name"], data["models"]["name"][hit["model"]],
                                     "%.9g" % hit["evalue"], domain["score"],
                                     domain["env_from"], target["description"]]
                                    for target, hit, domain in got), wanted)
            best = [min(hit["evalue"] for hit in target["hits"]) for target in page_targets(data)]
            self.assertEqual(best, sorted(best))
            self.assertEqual(len(best), len(targets))
            everything = "".join(page.texts)
            self.assertIn("a <title> & more", everything)
            self.assertIn("</script><img src=x onerror=alert(1)> & \"more\"",
                          data["targets"]["description"])
            if source == "json":
                self.assertIn(f"{len(self.records)} targets", everything)
                self.assertEqual(len(alignments), domains)
                first = next(line for line in lines if line["record"] == "target" and
                             line["name"] == got[0][0]["name"] and
                             line["model_index"] == got[0][1]["model"])
                want = first["domains"][0]["alignment"]
                self.assertEqual(alignments[0], [want[key] for key in
                                                 ("model", "match", "target", "pp")])
            else:
                self.assertEqual(alignments, [])
        ok(report([paths["json"], "-o", self.path("few.html"), "--top", "3"]))
        text = read(self.path("few.html")).decode()
        self.assertIn(f"The best 3 of {len(targets)} selected sequences are on this page.", text)
        bests = [min(hit["evalue"] for hit in target["hits"]) for target in page_targets(page_data(text)[0])]
        self.assertEqual(bests, best[:3])
        ok(report([paths["json"], "-o", self.path("some.html"), "--included", "--model", "fn3", "-E", "1e-6"]))
        data, _ = page_data(read(self.path("some.html")).decode())
        self.assertEqual(sorted((target["name"], domain["env_from"]) for target, _, domain in page_domains(data)),
                         sorted((line["name"], domain["env_from"]) for line in lines
                                if line["record"] == "target" and line["model"] == "fn3" and line["included"]
                                for domain in line["domains"]
                                if domain["included"] and domain["i_evalue"] <= 1e-6))
        unknown = report([paths["json"], "-o", self.path("none.html"), "--model", "fn"])
        self.assertEqual(unknown.returncode, USAGE_ERROR)
        self.assertIn(b"did you mean fn3?", unknown.stderr)
        unnamed = report([paths["json"]])
        self.assertEqual(unnamed.stderr, f"hmmjit report: wrote {paths['json']}.html\n".encode())


if __name__ == "__main__":
    scenario.main()
