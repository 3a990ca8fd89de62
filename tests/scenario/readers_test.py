"""Users' readers accept --tsv and --json without options: a test for each, skipped if the reader is not installed
(tools/install_packages.sh --readers).

ctest runs each test separately, so that its list shows the skipped ones. HMMJIT_TEST_READERS, set by ctest, is a Python
environment with the readers from PyPI.
"""
import csv
import importlib
import importlib.util
import os
import shutil
import sys

ENVIRONMENT = os.environ.pop("HMMJIT_TEST_READERS", "")
if os.access(os.path.join(ENVIRONMENT, "bin", "python3"), os.X_OK):
    python = os.path.join(ENVIRONMENT, "bin", "python3")
    os.execv(python, [python, "-B"] + sys.argv)

import scenario
from outputs_test import ResultsFolder, read


class Readers(ResultsFolder):
    def reader(self, name):
        """A Python package."""
        if importlib.util.find_spec(name) is None:
            self.skipTest(f"NOTHING READ: {name} is not installed (tools/install_packages.sh --readers)")
        return importlib.import_module(name)

    def command(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"NOTHING READ: {name} is not installed (tools/install_packages.sh --readers)")
        return name

    def test_csv_and_numpy(self):
        numpy = self.reader("numpy")
        paths, want, _ = self.nasty_run()
        with open(paths["tsv"], newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual([(row["target"], row["description"]) for row in rows], want)
        self.assertEqual({None in row or None in row.values() for row in rows}, {False})
        # Each line is a row, and fields without quotes are unchanged: cut and awk work.
        self.assertEqual(read(paths["tsv"]).count(b"\n"), len(want) + 1)
        table = numpy.loadtxt(paths["tsv"], dtype=str, delimiter="\t", quotechar='"', comments=None, skiprows=1)
        self.assertEqual(table.shape, (len(want), len(rows[0])))
        place = list(rows[0]).index("description")
        self.assertEqual([(row[0], row[place]) for row in table], want)

    def test_pandas(self):
        pandas = self.reader("pandas")
        paths, want, lines = self.nasty_run()
        table = pandas.read_csv(paths["tsv"], sep="\t")
        self.assertEqual(str(table["evalue"].dtype), "float64")
        self.assertEqual(str(table["target_length"].dtype), "int64")
        rows = [(row.target, row.description if isinstance(row.description, str) else "") for row in table.itertuples()]
        # pandas documents that "NULL" is read as missing.
        self.assertEqual(rows, [(name, "" if text == "NULL" else text) for name, text in want])
        for got, wanted in zip(table["evalue"], self.evalues(paths), strict=True):
            self.assertAlmostEqual(got, wanted, delta=1e-12 * abs(wanted))  # its decimal parser is approximate
        frame = pandas.read_json(paths["json"], lines=True)
        self.assertEqual(len(frame), len(lines))
        targets = frame[frame["record"] == "target"]
        self.assertEqual(list(targets["name"]), [line["name"] for line in lines if line["record"] == "target"])

    def test_polars(self):
        polars = self.reader("polars")
        paths, want, lines = self.nasty_run()
        table = polars.read_csv(paths["tsv"], separator="\t")
        self.assertEqual([(row["target"], row["description"] or "") for row in table.to_dicts()], want)
        self.assertEqual(table["evalue"].to_list(), self.evalues(paths))
        frame = polars.read_ndjson(paths["json"], infer_schema_length=None)
        self.assertEqual(frame.height, len(lines))
        names = frame.filter(polars.col("record") == "target")["name"].to_list()
        self.assertEqual(names, [line["name"] for line in lines if line["record"] == "target"])

    def test_duckdb(self):
        duckdb = self.reader("duckdb")
        paths, want, lines = self.nasty_run()
        rows = duckdb.sql(f"select target, evalue, description from '{paths['tsv']}'").fetchall()
        self.assertEqual([(row[0], row[2] or "") for row in rows], want)
        self.assertEqual([row[1] for row in rows], self.evalues(paths))
        names = duckdb.sql(f"select name from '{paths['json']}' where record = 'target'").fetchall()
        self.assertEqual([row[0] for row in names], [line["name"] for line in lines if line["record"] == "target"])

    def test_r(self):
        self.command("Rscript")
        paths, want, _ = self.nasty_run()
        code = ("x <- read.delim(commandArgs(TRUE)[1], na.strings = ''); stopifnot(is.numeric(x$evalue), "
                "is.numeric(x$ln_p)); writeLines(ifelse(is.na(x$description), '', x$description)); "
                "writeLines(x$target); writeLines(format(x$evalue, digits = 17))")
        done = scenario.ok(scenario.run(["Rscript", "--vanilla", "-e", code, paths["tsv"]]))
        lines = done.stdout.decode().split("\n")[:-1]
        rows = len(want)
        self.assertEqual(list(zip(lines[rows:2 * rows], lines[:rows])), want)
        for got, wanted in zip(lines[2 * rows:], self.evalues(paths), strict=True):
            self.assertAlmostEqual(float(got), wanted, delta=1e-14 * abs(wanted))  # R's decimal parser is approximate

    def test_jq(self):
        self.command("jq")
        paths, _, lines = self.nasty_run()
        done = scenario.run(["jq", "-r", 'select(.record == "target") | .name', paths["json"]])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode().split("\n")[:-1],
                         [line["name"] for line in lines if line["record"] == "target"])

    def evalues(self, paths):
        with open(paths["tsv"], newline="") as file:
            return [float(row["evalue"]) for row in csv.DictReader(file, delimiter="\t")]


if __name__ == "__main__":
    scenario.main()
