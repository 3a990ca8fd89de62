#!/usr/bin/env python3
"""Compares random cases with the installed programs of HMMER, byte for byte, for a given time (or until SIGTERM).

usage: tests/scenario/random_cases.py PROGRAM [--seconds N] [--seed S] [--only S/NUMBER] [--kinds search,scan,...]
                       [--keep FOLDER]

A case is a search (70 in 100), hmmscan, phmmer, jackhmmer or hmmbuild, with random models (hmmbuild of
alignments that hmmemit emits, with random options, cut to random columns), targets (emitted, random,
degenerate, repeated, empty, long; as FASTA, EMBL, gzip or a database), options, numbers of threads and
bounds on memory. All of it follows from the seed and the number of the case, which are printed:
--only S/NUMBER repeats one. Where HMMER ends with an error, hmmjit must as well, with one line; where HMMER
crashes, hmmjit must answer. A case that differs is reduced to few models, targets and options, and kept in
--keep. An hour by hand: tests/scenario/random_cases.py build/release/bin/hmmjit --seconds 3600 --keep kept

Exit status: 0 no case differs; 1 one does; 77 HMMER is not installed.
"""
import argparse
import collections
import concurrent.futures
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import scenario
from scenario import comparable, example_model, first_difference, read, write_embl, write_fasta

SKIPPED = 77
PROGRAMS = ("hmmsearch", "hmmscan", "hmmpress", "phmmer", "jackhmmer", "hmmbuild", "hmmemit")
KINDS = {"search": 70, "scan": 10, "build": 10, "phmmer": 7, "jackhmmer": 3}
MODELS = ("fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm", "Pkinase.hmm",
          "LuxC.hmm", "ecori.hmm")
LETTERS, WEIGHTS = list(scenario.BACKGROUND), list(scenario.BACKGROUND.values())
LONGEST = 90  # seconds for one program of one case


def text(number):
    return f"{number:.6g}"


# ---- inputs and options --------------------------------------------------------------------------

def random_residues(rng, length):
    return "".join(rng.choices(LETTERS, WEIGHTS, k=length))


class Material:
    """Models to emit from; made once."""

    def __init__(self, folder):
        self.models = []
        for name in MODELS:
            try:
                self.models.append(example_model(name, folder))
            except FileNotFoundError:
                pass


def emitted(rng, model, count, aligned=False):
    command = ["hmmemit", "--seed", str(rng.randrange(1, 2**31)), "-N", str(count)]
    made = scenario.run(command + (["-a"] if aligned else []) + [model], timeout=LONGEST)
    return made.stdout.decode() if made.returncode == 0 else ""


def random_alignment(rng, material):
    """(rows, reference annotation): emitted by a model or random, cut to random columns."""
    rows = collections.OrderedDict()
    if rng.random() < 0.8:
        for line in emitted(rng, rng.choice(material.models), rng.randrange(1, 25), True).split("\n"):
            fields = line.split()
            if len(fields) == 2 and not line.startswith("#"):
                rows[fields[0]] = rows.get(fields[0], "") + fields[1].upper().replace(".", "-")
    if not rows:
        width = rng.choice((1, 2, 3, 10, 40, 150))
        for i in range(rng.randrange(1, 10)):
            rows[f"row{i}"] = random_residues(rng, width)
    width = len(next(iter(rows.values())))
    if width > 3 and rng.random() < 0.5:
        first = rng.randrange(width - 1)
        last = rng.randrange(first + 1, min(width, first + rng.choice((3, 20, 200))) + 1)
        rows = {name: row[first:last] for name, row in rows.items()}
        width = last - first
    if rng.random() < 0.3:  # wear
        rows = {name: "".join("-" if rng.random() < 0.1 else rng.choice("XBZJUO") if rng.random() < 0.01
                              else c for c in row) for name, row in rows.items()}
    rows = {name: row for name, row in rows.items() if row.strip("-")}
    if not rows:
        rows = {"row": random_residues(rng, width)}
    reference = "".join("x" if rng.random() < 0.8 else "." for _ in range(width))
    return rows, reference if "x" in reference else "x" * width


def write_stockholm(path, name, rows, reference, cutoffs, weights=None, mask=None):
    with open(path, "w") as file:
        file.write(f"# STOCKHOLM 1.0\n#=GF ID {name}\n")
        for tag, pair in cutoffs:
            file.write(f"#=GF {tag} {pair[0]} {pair[1]};\n")
        for row, weight in zip(rows, weights or []):
            file.write(f"#=GS {row} WT {weight}\n")
        for row, residues in rows.items():
            file.write(f"{row} {residues}\n")
        if mask:
            file.write(f"#=GC MM {mask}\n")
        file.write(f"#=GC RF {reference}\n//\n")


BUILD_OPTIONS = (
    lambda r: ["--hand"], lambda r: ["--symfrac", text(r.uniform(0, 1))],
    lambda r: ["--fragthresh", text(r.uniform(0, 1))], lambda r: ["--wnone"],
    lambda r: ["--enone"], lambda r: ["--eset", text(r.uniform(0.1, 20))],
    lambda r: ["--ere", text(r.uniform(0.1, 1.5))], lambda r: ["--esigma", text(r.uniform(20, 90))],
    lambda r: ["--pnone"], lambda r: ["--plaplace"], lambda r: ["--maxinsertlen", str(r.randrange(5, 50))],
    lambda r: ["--seed", str(r.randrange(1, 1000))], lambda r: ["--EmN", str(r.randrange(20, 100))],
    lambda r: ["--EfL", str(r.randrange(50, 200))], lambda r: ["--wgiven"], lambda r: ["--wgsc"],
    lambda r: ["--wblosum"], lambda r: ["--eclust"], lambda r: ["--singlemx"],
    lambda r: ["--w_beta", text(r.uniform(0, 1))], lambda r: ["--w_length", str(r.randrange(-9, 99))],
    lambda r: ["--EvN", str(r.randrange(20, 100))],
    lambda r: ["--Eft", text(r.uniform(0.01, 0.3))])
# Mutually exclusive options.
EXCLUSIVE = ({"--enone", "--eset", "--ere", "--esigma", "--eclust"},
             {"--wnone", "--wgiven", "--wgsc", "--wblosum"}, {"--pnone", "--plaplace"},
             {"--hand", "--symfrac"}, {"-E", "-T"}, {"--domE", "--domT"}, {"--incE", "--incT"},
             {"--incdomE", "--incdomT"}, {"--notextw", "--textw"},
             {"--max", "--F1"}, {"--max", "--F2"}, {"--max", "--F3"}, {"--max", "--nobias"},
             {"--cut_ga", "--cut_nc", "--cut_tc", "-E", "-T", "--domE", "--domT", "--incE", "--incT",
              "--incdomE", "--incdomT"})


def e_value(rng):
    return text(10 ** rng.uniform(-30, 4))


SEARCH_OPTIONS = (
    lambda r: ["-E", e_value(r)], lambda r: ["-T", text(r.uniform(-50, 200))],
    lambda r: ["--domE", e_value(r)], lambda r: ["--domT", text(r.uniform(-20, 80))],
    lambda r: ["--incE", e_value(r)], lambda r: ["--incT", text(r.uniform(-20, 150))],
    lambda r: ["--incdomE", e_value(r)], lambda r: ["--incdomT", text(r.uniform(-20, 80))],
    lambda r: ["-Z", text(10 ** r.uniform(-2, 8))], lambda r: ["--domZ", text(10 ** r.uniform(-2, 5))],
    lambda r: ["--F1", text(10 ** r.uniform(-3, 0.3))], lambda r: ["--F2", text(10 ** r.uniform(-5, 0.3))],
    lambda r: ["--F3", text(10 ** r.uniform(-8, 0.3))], lambda r: ["--nobias"], lambda r: ["--nonull2"],
    lambda r: ["--max"], lambda r: ["--acc"], lambda r: ["--noali"], lambda r: ["--notextw"],
    lambda r: ["--textw", str(r.randrange(120, 300))], lambda r: ["--seed", str(r.randrange(1, 10**6))],
    lambda r: [r.choice(("--cut_ga", "--cut_nc", "--cut_tc"))])


def random_options(rng, table, most):
    chosen, taken = [], set()
    for make in rng.sample(table, rng.randrange(0, most + 1)):
        option = make(rng)
        if option[0] not in taken and not any(option[0] in group and taken & group for group in EXCLUSIVE):
            taken.add(option[0])
            chosen.append(option)
    return chosen


def random_targets(rng, models):
    """Records, some of them difficult."""
    records = []
    domains = [record[2].upper() for model in models
               for record in scenario.fasta_records(emitted(rng, model, rng.randrange(1, 20)))]
    for _ in range(rng.choice((0, 1, 3, 20, 60))):
        parts = [random_residues(rng, rng.randrange(0, 150))]
        while domains and (len(parts) == 1 or rng.random() < 0.4):
            parts += [rng.choice(domains), random_residues(rng, rng.randrange(0, 60))]
        residues = list("".join(parts))
        for _ in range(len(residues) // rng.choice((5, 30, 1000))):
            residues[rng.randrange(len(residues))] = rng.choice(LETTERS + ["X", "B", "U", "O", "J", "Z"])
        records.append("".join(residues))
    odd = (lambda: "", lambda: "*" * rng.randrange(1, 20), lambda: rng.choice(LETTERS),
           lambda: "X" * rng.randrange(1, 300), lambda: rng.choice(LETTERS) * rng.randrange(1, 400),
           lambda: (random_residues(rng, rng.randrange(1, 6))) * rng.randrange(1, 60),
           lambda: random_residues(rng, rng.randrange(1, 40)) + "*" + random_residues(rng, 50),
           lambda: random_residues(rng, rng.randrange(2000, 6000)).lower(),
           lambda: "".join(rng.choices(domains or ["MKV"], k=rng.randrange(1, 30)))[:7000])
    records += [rng.choice(odd)() for _ in range(rng.choice((0, 1, 5)))]
    records += [rng.choice(records) for _ in range(rng.choice((0, 0, 3))) if records]
    records += [random_residues(rng, rng.randrange(1, 400)) for _ in range(rng.choice((1, 10, 80)))]
    rng.shuffle(records)
    return [[f"t{i}{'x' * rng.choice((0, 0, 3, 25))}", rng.choice(("", "", "some words", "d" * 90)), residues]
            for i, residues in enumerate(records)]


# ---- cases ---------------------------------------------------------------------------------------

class Case:
    """One comparison. `pieces` are lists that can be reduced; the rest is fixed."""

    def __init__(self, seed, number, kinds, material, folder):
        self.label = f"{seed}/{number}"
        self.folder = folder
        rng = random.Random(self.label)
        self.kind = rng.choices(list(kinds), list(kinds.values()))[0]
        self.threads = rng.choice(("1", "1", "2", "3"))
        self.memory = rng.choice((None, None, None, "100K", "1M", "30M"))
        self.format = rng.choice(("fasta", "fasta", "embl", "gz", "db"))
        self.pieces = {"options": [], "models": [], "queries": [], "targets": []}
        alignment = self.path("alignment.sto")
        if self.kind in ("search", "scan", "build"):
            for i in range(1 if self.kind == "build" else rng.choice((1, 1, 2, 4))):
                rows, reference = random_alignment(rng, material)
                cutoffs = [(tag, (text(rng.uniform(1, 40)), text(rng.uniform(1, 40))))
                           for tag in ("GA", "TC", "NC") if rng.random() < 0.3]
                weights = [text(rng.uniform(0.1, 5)) for _ in rows] if rng.random() < 0.3 else None
                mask = "".join("m" if rng.random() < 0.1 else "." for _ in reference) \
                    if rng.random() < 0.1 else None
                write_stockholm(alignment, f"model{i}", rows, reference, cutoffs, weights, mask)
                options = random_options(rng, BUILD_OPTIONS, 3)
                if mask or set("".join(rows.values())) & set("XBZJUO"):
                    # HMMER 3.3.2 and 3.4 differ in the identity of rows with these, and masked residues are X.
                    options = [option for option in options
                               if option[0] not in ("--wgsc", "--wblosum", "--eclust")]
                if self.kind == "build":
                    self.pieces["options"] = options + ([["-n", "given"]] if rng.random() < 0.1 else [])
                    return
                made = scenario.run(["hmmbuild", "--cpu", "0", "--amino"] + sum(options, []) +
                                    [self.path("one.hmm"), alignment], timeout=LONGEST)
                if made.returncode == 0:
                    self.pieces["models"].append(read(self.path("one.hmm")))
            if not self.pieces["models"]:
                self.pieces["models"].append(read(rng.choice(material.models)))
        table = [make for make in SEARCH_OPTIONS
                 if self.kind != "jackhmmer" or make(rng)[0] not in ("--max", "--cut_ga", "--cut_nc", "--cut_tc")]
        self.pieces["options"] = random_options(rng, table, rng.choice((1, 3, 6)))
        sources = rng.sample(material.models, 2)
        if self.pieces["models"]:
            path = self.path("source.hmm")
            with open(path, "wb") as file:
                file.write(rng.choice(self.pieces["models"]))
            sources[0] = path
        self.pieces["targets"] = random_targets(rng, sources)
        if self.kind in ("phmmer", "jackhmmer"):
            # HMMER's consensus of a query that ends in a degenerate residue depends on unrelated memory.
            clean = [[name, words, "".join(c for c in residues.upper() if c in scenario.BACKGROUND)]
                     for name, words, residues in self.pieces["targets"]]
            clean = [record for record in clean if record[2]]
            self.pieces["queries"] = rng.sample(clean, min(len(clean), rng.randrange(1, 3)))
            self.pieces["targets"] = clean

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self):
        """Writes the current pieces to files."""
        with open(self.path("models.hmm"), "wb") as file:
            file.write(b"".join(self.pieces["models"]))
        write_fasta(self.path("queries.fasta"), self.pieces["queries"])
        plain = self.path("targets.embl" if self.format == "embl" else "targets.fasta")
        (write_embl if self.format == "embl" else write_fasta)(plain, self.pieces["targets"])
        self.want_targets = self.got_targets = plain
        if self.format == "gz":
            self.got_targets = plain + ".gz"
            with gzip.open(self.got_targets, "wb", 1) as file:
                file.write(read(plain))
        elif self.format == "db":
            made = scenario.run([scenario.program, "db", "build", "--quiet", "-o",
                                 self.path("targets.hjdb"), plain])
            if made.returncode == 0:
                self.got_targets = self.path("targets.hjdb")

    def commands(self):
        """HMMER's and our command without outputs, and the common outputs."""
        options = sum(self.pieces["options"], [])
        ours = [scenario.program, self.kind]
        models, queries = self.path("models.hmm"), self.path("queries.fasta")
        if self.kind != "build":
            ours += ["--quiet", "--cpu", self.threads]
        outputs = ["o", "tblout", "domtblout", "pfamtblout"]
        if self.kind == "build":
            alignment = self.path("alignment.sto")
            return (["hmmbuild", "--cpu", "0", "--amino"] + options, ours + ["--amino"] + options, ["O", "hmm"],
                    [alignment], [alignment])
        if self.kind == "scan":
            return (["hmmscan", "--cpu", "0"] + options, ours + options, outputs,
                    [models, self.want_targets], [models, self.want_targets])
        ours += ["--device", "cpu"] + (["--mem", self.memory] if self.memory else [])
        if self.kind == "search":
            return (["hmmsearch", "--cpu", "0"] + options, ours + options, ["A"] + outputs,
                    [models, self.want_targets], [models, self.got_targets])
        rounds = ["-N", "2"] if self.kind == "jackhmmer" else []
        outputs = ["A"] + (outputs[:3] if self.kind == "jackhmmer" else outputs)
        return ([self.kind, "--cpu", "0"] + rounds + options, ours + rounds + options, outputs,
                [queries, self.want_targets], [queries, self.want_targets])

    def files(self, label, outputs):
        arguments = []
        for output in outputs:
            if output == "hmm":
                return arguments + [self.path(f"{label}.{output}")]
            arguments += ["-" + output if len(output) == 1 else "--" + output,
                          self.path(f"{label}.{output}")]
        return arguments

    def lines(self, label, output):
        return comparable(output, read(self.path(f"{label}.{output}")))

    def run(self):
        """("same", ""), or another outcome and details."""
        for name in os.listdir(self.folder):
            if name.startswith(("want.", "got.", "models.hmm", "targets.")):
                os.remove(self.path(name))
        if self.kind != "build":
            self.write()
        if self.kind == "scan":
            scenario.run(["hmmpress", self.path("models.hmm")])
        theirs, ours, outputs, their_inputs, our_inputs = self.commands()
        try:
            want = scenario.run(theirs + self.files("want", outputs) + their_inputs, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return "HMMER takes too long", ""
        try:
            got = scenario.run(ours + self.files("got", outputs) + our_inputs, timeout=2 * LONGEST)
        except subprocess.TimeoutExpired:
            return "hangs", "hmmjit takes too long"
        if got.returncode < 0 or got.returncode == 1 or got.returncode > 7:
            return "crashes", f"status {got.returncode}: {got.stderr}"
        if want.returncode < 0 or b"Fatal exception" in want.stderr:
            # hmmjit checks the thresholds of all models first; HMMER crashed before it reached the one without.
            unavailable = got.returncode == 3 and b"thresholds unavailable" in got.stderr
            # Without a prior, a model may not emit some residues and cannot be calibrated.
            unavailable |= got.returncode == 3 and b"no distribution fits" in got.stderr
            # Without a prior, the target of the relative entropy may be out of reach.
            unavailable |= got.returncode == 3 and b"no effective number of sequences" in got.stderr
            return ("HMMER crashes", "") if got.returncode == 0 or unavailable else \
                ("refused", f"HMMER crashes, hmmjit: {got.returncode}, {got.stderr}")
        if (want.returncode == 0) != (got.returncode == 0):
            return "one refuses", f"HMMER {want.returncode} {want.stderr}, hmmjit {got.returncode} {got.stderr}"
        if want.returncode != 0:
            return ("both refuse", "") if got.stderr.count(b"\n") == 1 else ("not one line", str(got.stderr))
        for output in outputs:
            there = [os.path.exists(self.path(f"{label}.{output}")) for label in ("want", "got")]
            if there != [True, True]:
                if there[0] == there[1]:
                    continue
                return "differs", f"-{output}: there: {there}"
            expected, actual = self.lines("want", output), self.lines("got", output)
            if expected != actual:
                return "differs", f"-{output}: {first_difference(expected, actual)}"
        return "same", ""


GOOD = {"same", "both refuse", "HMMER crashes", "HMMER takes too long"}


def reduce_case(case, kind, seconds=120):
    """Drops pieces while the outcome of the case stays the same."""
    end = time.monotonic() + seconds
    for name in ("models", "options", "targets", "queries", "targets", "models", "options"):
        step = max(1, len(case.pieces[name]) // 2)
        while case.pieces[name]:
            at = 0
            while at < len(case.pieces[name]) and time.monotonic() < end:
                kept = case.pieces[name]
                shorter = kept[:at] + kept[at + step:]
                if not shorter and name != "options":
                    break
                case.pieces[name] = shorter
                if case.run()[0] != kind:
                    case.pieces[name] = kept
                    at += step
            if step == 1 or time.monotonic() >= end:
                break
            step //= 2
    return case.run()


def keep(case, outcome, folder):
    kept = os.path.join(folder, case.label.replace("/", "_"))
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(case.folder, kept)
    theirs, ours, outputs, their_inputs, our_inputs = case.commands()
    with open(os.path.join(kept, "README"), "w") as file:
        file.write(f"{case.label}: {outcome[0]}: {outcome[1]}\n")
        for command in (theirs + their_inputs, ours + our_inputs):
            file.write(" ".join(command).replace(case.folder, ".") + "\n")
    return kept


# ---- the loop ------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=os.environ.get("HMMJIT_TEST_SEED"))
    parser.add_argument("--only")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep")
    given = parser.parse_args()
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or not os.path.isdir(scenario.EXAMPLES):
        print("SKIPPED: not installed:", missing or scenario.EXAMPLES)
        return SKIPPED
    scenario.program = os.path.abspath(given.program)
    kinds = {kind: KINDS[kind] for kind in given.kinds.split(",")}
    seed = given.seed or random.SystemRandom().randrange(1, 2**31)
    numbers = None
    if given.only:
        seed, number = given.only.split("/")
        numbers = [int(number)]
    print(f"random seed {seed} (HMMJIT_TEST_SEED or --seed repeats it)", flush=True)
    counts, failures, lock = collections.Counter(), [], threading.Lock()
    end = time.monotonic() + given.seconds
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    next_number = iter(numbers if numbers is not None else range(10**9))

    with tempfile.TemporaryDirectory(prefix="hmmjit-random-") as scratch:
        material = Material(scratch)

        def work():
            while (time.monotonic() < end and not stop.is_set()) or numbers:
                with lock:
                    number = next(next_number, None)
                    if number is None or len(failures) >= 10:
                        return
                folder = os.path.join(scratch, str(number))
                os.mkdir(folder)
                case = Case(seed, number, kinds, material, folder)
                outcome = case.run()
                if outcome[0] not in GOOD:
                    case_kept = ""
                    if case.kind != "build":
                        outcome = reduce_case(case, outcome[0])
                    if given.keep:
                        case_kept = ", kept in " + keep(case, outcome, given.keep)
                    with lock:
                        failures.append(case.label)
                        print(f"{case.label} ({case.kind}): {outcome[0]}: {outcome[1]}\n"
                              f"  {' '.join(sum(case.pieces['options'], []))}; {len(case.pieces['models'])} "
                              f"models, {len(case.pieces['targets'])} targets{case_kept}", flush=True)
                with lock:
                    counts[case.kind + ": " + outcome[0]] += 1
                shutil.rmtree(folder)

        workers = len(os.sched_getaffinity(0))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for one in [pool.submit(work) for _ in range(workers)]:
                one.result()
    for name in sorted(counts):
        print(f"{counts[name]:7} {name}")
    print(f"{sum(counts.values())} random cases, {len(failures)} not as HMMER's")
    enough = sum(count for name, count in counts.items() if name.endswith(": same"))
    if not numbers and enough < min(5, given.seconds / 4):
        print("hardly any case was compared")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
