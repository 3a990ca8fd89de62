"""Merged parts give the bytes of the undivided search."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import scenario
from scenario import SEED, SharedInputs, example_model, ok, read

MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm", "Pkinase.hmm"]
USAGE_ERROR, INPUT_ERROR, RESOURCES, OUTPUT_ERROR = 2, 3, 5, 7
EVERYTHING = ("-o", "-A", "--tblout", "--domtblout", "--pfamtblout", "--tsv", "--json", "--a3m")
WITHOUT_ALIGNMENTS = tuple(o for o in EVERYTHING if o not in ("-A", "--a3m"))
AS_HMMSCAN = tuple(o for o in EVERYTHING if o != "--pfamtblout")
# Lines with program, time and folder.
VOLATILE = (b"# hmmjit ", b"# CPU time:", b"# Mc/sec:", b"# Date:", b"# Current dir:",
            b"# Program:")


def name_of(option):
    return "result." + option.lstrip("-")


def comparable(data):
    lines = []
    for line in data.split(b"\n"):
        if line.startswith(VOLATILE):
            continue
        if line.startswith(b'{"record":"run"'):
            record = json.loads(line)
            for member in ("program", "date", "folder"):
                record.pop(member)
            line = json.dumps(record).encode()
        lines.append(line)
    return lines


class PartsFolder(SharedInputs):
    def call(self, arguments, status=0, folder=None, **keywords):
        done = subprocess.run([scenario.program] + arguments, cwd=folder or self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                              **keywords)
        self.assertEqual(done.returncode, status, (arguments, done.stdout[-500:], done.stderr))
        if status not in (0,):
            self.assertLessEqual(done.stderr.count(b"\n"), 2 if status == USAGE_ERROR else 1,
                                 done.stderr)
        return done

    def new_folder(self, name):
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        return folder

    def search_whole(self, options=(), outputs=EVERYTHING, name="whole"):
        folder = self.new_folder(name)
        # merge omits options of the machine (threads, memory) from the header.
        arguments = ["search"] + list(options)
        for output in outputs:
            arguments += [output, name_of(output)]
        self.call(arguments + [self.library, self.database], folder=folder)
        return folder

    def search_parts(self, number, options=(), name="parts", which=None, more=()):
        folder = self.new_folder(name)
        threads = [] if "--cpu" in more else ["--cpu", "2"]
        self.call(["search", "--quiet", "--device", "cpu"] + threads + ["--part",
                   which or f"1-{number}/{number}" if number > 1 else "1/1", "--part-file",
                   os.path.join(folder, "{}.hjpart")] + list(options) + list(more) +
                  [self.library, self.database])
        return folder

    def merge(self, parts, outputs=EVERYTHING, options=(), name="merged", status=0):
        folder = self.new_folder(name)
        arguments = ["merge"] + list(options)
        for output in outputs:
            arguments += [output, name_of(output)]
        done = self.call(arguments + list(parts), folder=folder, status=status)
        if status != 0:
            self.assertEqual(os.listdir(folder), [], "a failed merge leaves nothing")
            return done
        return folder

    def check_same(self, whole, merged, outputs=EVERYTHING):
        for output in outputs:
            want = comparable(read(os.path.join(whole, name_of(output))))
            got = comparable(read(os.path.join(merged, name_of(output))))
            if want != got:
                self.fail(f"{output}: {scenario.first_difference(want, got)}")

    def info(self, part):
        return json.loads(self.call(["part", "info", "--json", part]).stdout)


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Parts(PartsFolder):
    def make_inputs(self):
        models = [example_model(name, self.folder) for name in MODELS]
        # A model without hits between the others.
        none = self.path("none.hmm")
        self.write("nothing.fa", ">a\nWWWWCWWWWHWWWWCWWWMWWWCWWWW\n")
        ok(scenario.run(["hmmbuild", "--amino", "-n", "nothing", "--informat", "afa", none, self.path("nothing.fa")]))
        self.library = self.join_models(models[:3] + [none] + models[3:])
        records = scenario.emitted_targets(models, SEED, per_model=12, decoys=60)
        rng = random.Random(SEED)
        for _ in range(40):  # ties: equal sequences with equal or different names
            name, description, residues = rng.choice(records)
            records.insert(rng.randrange(len(records)),
                           [rng.choice([name, f"copy{rng.randrange(9)}"]), description, residues])
        # An early weak hit with a long name: with a strict threshold it is only a candidate, but determines column
        # widths.
        weak = next(record for record in records if record[0].startswith("emitted"))
        records.insert(0, ["early_and_with_a_very_long_name_indeed" * 2, "", weak[2][:90]])
        self.records = records
        source = self.path("targets.embl")
        scenario.write_embl(source, records)
        self.database = self.path("targets.hjdb")
        self.call(["db", "build", "-o", self.database, source])

    def check(self, numbers, options=(), outputs=EVERYTHING, merge_options=(), shown=()):
        whole = self.search_whole(list(options) + list(shown), outputs)
        for number in numbers:
            with self.subTest(parts=number, options=options):
                parts = self.search_parts(number, options)
                merged = self.merge([parts], outputs, list(merge_options) + list(shown))
                self.check_same(whole, merged, outputs)

    def test_any_number_of_parts(self):
        self.check([1, 2, 3, 7, 64, len(self.records) + 50])

    def test_thresholds(self):
        for options in (["--cut_ga"], ["-E", "1e-10"], ["-T", "30"], ["-Z", "1e6"],
                        ["--domZ", "5"], ["--max"], ["--domE", "1e-5", "--incE", "1e-20"],
                        ["--incT", "40", "--incdomT", "20", "--domT", "15"],
                        ["--nonull2", "--F1", "0.3", "--F2", "0.1", "--F3", "0.01", "--nobias"],
                        ["--seed", "7"]):
            if options == ["--cut_ga"]:
                library, self.library = self.library, self.with_cutoffs()
                self.check([3], options)
                self.library = library
            else:
                self.check([3], options)

    def with_cutoffs(self):
        """The models, each with a GA line."""
        path = self.path("cutoffs.hmm")
        with open(path, "w") as file:
            for line in read(self.library).decode().splitlines(keepends=True):
                if line.startswith(("GA ", "TC ", "NC ")):
                    continue
                if line.startswith("STATS LOCAL MSV"):
                    file.write("GA    22.00 18.00;\n")
                file.write(line)
        return path

    def test_hmmscan(self):
        self.check([1, 3, 64], ["--as", "hmmscan"], AS_HMMSCAN)
        self.library = self.with_cutoffs()
        self.check([3], ["--as", "hmmscan", "--cut_ga"], AS_HMMSCAN)

    def test_without_alignments(self):
        self.check([3], ["--noali"], WITHOUT_ALIGNMENTS)
        whole = self.search_whole(["--noali"], EVERYTHING)  # alignments, but not in the report
        merged = self.merge([self.search_parts(3)], EVERYTHING, ["--noali"])
        self.check_same(whole, merged)
        parts = self.search_parts(2, ["--noali"])
        for output in ("-A", "--a3m"):
            done = self.merge([parts], [output], status=USAGE_ERROR)
            self.assertIn(b"which the search left out", done.stderr)

    def test_display_options(self):
        self.check([2], shown=["--acc", "--notextw"])
        self.check([2], shown=["--textw", "130"])
        self.check([2], shown=["--seq-limit", "2"])
        self.check([2], ["--acc"])  # given to the search, and kept
        self.check([2], ["--seq-limit", "3"])

    def test_little_memory(self):
        """Hits of a model in lots, domains sorted on disk."""
        for options, outputs in ((["-E", "100", "--incE", "1e-15"], EVERYTHING),
                                 (["--as", "hmmscan"], AS_HMMSCAN)):
            whole = self.search_whole(options, outputs)
            parts = self.search_parts(5, options)
            self.check_same(whole, self.merge([parts], outputs, ["--mem", "26500000"]), outputs)
        whole = self.search_whole(["--notextw"])
        parts = self.search_parts(5, ["--notextw"])
        self.check_same(whole, self.merge([parts], options=["--mem", "26500000"]))
        done = self.merge([self.search_parts(64)], options=["--mem", "20M"], status=RESOURCES)
        self.assertIn(b"64 parts at once need", done.stderr)

    def test_slices(self):
        for options, outputs in (([], EVERYTHING), (["--as", "hmmscan"], AS_HMMSCAN),
                                 (["-E", "1e-300"], WITHOUT_ALIGNMENTS)):
            whole = self.search_whole(options, outputs)
            parts = self.search_parts(5, options)
            for number in (2, 3, 9):  # more than models
                slices = [self.merge([parts], outputs, ["--slice", f"{j + 1}/{number}"],
                                     name=f"slice{j}") for j in range(number)]
                joined = self.new_folder("joined")
                for output in outputs:
                    with open(os.path.join(joined, name_of(output)), "wb") as file:
                        for folder in slices:
                            file.write(read(os.path.join(folder, name_of(output))))
                with self.subTest(options=options, slices=number):
                    self.check_same(whole, joined, outputs)

    def test_content_is_the_same_however_it_is_made(self):
        reference = self.info(os.path.join(self.search_parts(1), "1.hjpart"))["content"]
        halves = self.search_parts(2, name="halves")
        for more in (["--cpu", "1"], ["--mem", "1M"], ["--cpu", "3", "--mem", "200K"]):
            again = self.search_parts(2, name="again", more=more)
            for part in ("1.hjpart", "2.hjpart"):
                self.assertEqual(self.info(os.path.join(halves, part))["content"],
                                 self.info(os.path.join(again, part))["content"], more)
        # Merged as a tree: the same content as a search of the larger part.
        quarters = self.search_parts(4, name="quarters")
        quarter = [os.path.join(quarters, f"{i + 1}.hjpart") for i in range(4)]
        joined = [self.path("first.hjpart"), self.path("second.hjpart")]
        self.call(["merge", "--part-file", joined[0], quarter[1], quarter[0]])
        self.call(["merge", "--part-file", joined[1]] + quarter[2:])
        self.assertEqual(self.info(joined[0])["content"],
                         self.info(os.path.join(halves, "1.hjpart"))["content"])
        self.assertEqual(self.info(joined[1])["content"],
                         self.info(os.path.join(halves, "2.hjpart"))["content"])
        self.call(["merge", "--part-file", self.path("all.hjpart"), joined[1], joined[0]])
        self.assertEqual(self.info(self.path("all.hjpart"))["content"], reference)
        self.call(["part", "verify", self.path("all.hjpart")])
        whole = self.search_whole()
        self.check_same(whole, self.merge([joined[1], joined[0]]))
        self.check_same(whole, self.merge([quarter[3], joined[0], quarter[2]]))
        self.check_same(whole, self.merge([self.path("all.hjpart")]))
        done = self.call(["merge", "--part-file", self.path("gap.hjpart"), quarter[0], quarter[2]],
                         status=INPUT_ERROR)
        self.assertIn(b"not adjacent", done.stderr)

    def test_parts_are_given_in_any_order_and_more_than_once(self):
        whole = self.search_whole()
        parts = self.search_parts(3)
        files = [os.path.join(parts, f"{i}.hjpart") for i in (3, 1, 2, 1)]
        shutil.copy(files[1], self.path("copy.hjpart"))
        self.check_same(whole, self.merge(files + [self.path("copy.hjpart")]))

    def test_model_parts(self):
        whole = self.search_whole()
        whole_scan = self.search_whole(["--as", "hmmscan"], AS_HMMSCAN, "scan")
        done = self.call(["search", "--part", "1/2", "--model-part", "1/2", "--part-file",
                          self.path("p"), self.library, self.database], status=INPUT_ERROR)
        self.assertIn(b"hmmjit part index", done.stderr)
        self.call(["part", "index", "--quiet", self.library])
        text = self.library
        binary = self.write("binary.h3m", scenario.run(["hmmconvert", "-b", self.library]).stdout)
        self.call(["part", "index", "--quiet", binary])
        for library, number, of in ((text, 3, 2), (binary, 1, 3), (text, 2, 20)):
            self.library = library
            folder = self.new_folder("grid")
            scan = self.new_folder("scan_grid")
            for j in range(1, of + 1):
                for target, options in ((folder, []), (scan, ["--as", "hmmscan"])):
                    self.call(["search", "--quiet", "--device", "cpu", "--part",
                               f"1-{number}/{number}" if number > 1 else "1/1", "--model-part",
                               f"{j}/{of}", "--part-file", os.path.join(target, f"{j}.{{}}.hjpart")]
                              + options + [self.library, self.database])
            with self.subTest(library=library, parts=number, of=of):
                if library == text:
                    self.check_same(whole, self.merge([folder]))
                    self.check_same(whole_scan, self.merge([scan], AS_HMMSCAN), AS_HMMSCAN)
                else:
                    self.merge([folder])
            # All models of one share of the targets, as one part.
            self.call(["merge", "--part-file", self.path("joined.hjpart")] +
                      [os.path.join(folder, f"{j}.1.hjpart") for j in range(1, of + 1)])
            self.call(["part", "verify", self.path("joined.hjpart")])
            os.remove(os.path.join(folder, f"2.{number}.hjpart"))
            done = self.call(["part", "missing", "--array", folder], status=INPUT_ERROR)
            self.assertEqual(done.stdout.decode(), f"{number + number}\n")
            done = self.merge([folder], status=INPUT_ERROR)
            self.assertIn(f"part {number} of {number} of model part 2/{of} is missing".encode(),
                          done.stderr)
        self.library = text
        with open(text, "a") as file:
            file.write("\n")
        done = self.call(["search", "--part", "1/2", "--model-part", "1/2", "--part-file",
                          self.path("p"), self.library, self.database], status=INPUT_ERROR)
        self.assertIn(b"have changed since the index was made", done.stderr)
        done = self.call(["part", "index", self.path("library.hmm.gz")], status=INPUT_ERROR)

    def test_unwritable_and_interrupted(self):
        folder = self.new_folder("parts")
        arguments = [scenario.program, "search", "--quiet", "--device", "cpu", "--cpu", "1",
                     "--max", "--part", "1/1", "--part-file", os.path.join(folder, "1.hjpart"),
                     self.library, self.database]
        # A search that is still running when this process kills it.
        many = self.path("many.hmm")
        with open(many, "wb") as sink:
            for copy in range(200):
                sink.write(re.sub(rb"(?m)^(NAME +\S+)", rb"\1_%d" % copy, read(self.library)))
        done = self.call(["search", "--quiet", "--part", "1/1", "--part-file",
                          os.path.join(folder, "no", "1.hjpart"), self.library, self.database],
                         status=OUTPUT_ERROR)
        self.assertIn(b"1.hjpart", done.stderr)
        for number, status in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
            run = subprocess.Popen(arguments[:-2] + [many, self.database], stderr=subprocess.PIPE)
            while not os.listdir(folder) and run.poll() is None:
                time.sleep(0.01)
            time.sleep(0.1)
            run.send_signal(number)
            run.communicate()
            self.assertEqual(run.returncode, status)
            self.assertFalse(os.path.exists(os.path.join(folder, "1.hjpart")))
            if number == signal.SIGTERM:
                self.assertEqual(os.listdir(folder), [])
        # Its temporary file does not disturb the next run.
        self.call(arguments[1:])
        self.call(["part", "verify", folder])
        # Twice at the same time.
        os.remove(os.path.join(folder, "1.hjpart"))
        runs = [subprocess.Popen(arguments) for _ in range(2)]
        self.assertEqual([run.wait() for run in runs], [0, 0])
        self.call(["part", "verify", folder])


if __name__ == "__main__":
    scenario.main()
