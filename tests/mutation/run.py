#!/usr/bin/env python3
"""Puts errors into a copy of the tree, one at a time, and says which of them the tests see.

All mutants of mutants.toml are compiled into one instrumented copy of the tree: an expression
`old` becomes `(hmmjit_mutant(n) ? (new) : (old))`, a statement becomes an if/else. The
environment variable HMMJIT_MUTANT chooses the one that is in force, so that one build serves all.

  run.py --check                       each mutant still applies to this tree (a fast test)
  run.py --work FOLDER [NAME ...]      build in FOLDER, run, print the table and the score; of some
                                       mutants, or those of some folders (engine/io cache)

A mutant is seen when a test fails that passes without it; a program that ends otherwise, or that
exceeds its time limit, counts as seen and is marked so. Tests named in a mutant's `seen_by` go
first, then all of the programs named for its folder in `[programs]`, and the first test that fails
ends the run of a mutant. As many mutants are run at once as --jobs says; the lines are printed in
the order of the list. What was found is kept in FOLDER/results.json after each test program, with
the digests of the programs that were run: a run that was interrupted goes on where it was, and
after a change only those mutants are run again whose programs came out different (--again: all).
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
DECLARATION = """#ifndef HMMJIT_MUTANT_DECLARED
#define HMMJIT_MUTANT_DECLARED
extern "C" char* getenv(const char*) noexcept;
extern "C" int atoi(const char*) noexcept;
inline bool hmmjit_mutant(int n) {
  static const int chosen = [] {
    const char* text = ::getenv("HMMJIT_MUTANT");
    return text != nullptr ? ::atoi(text) : 0;
  }();
  return chosen == n;
}
#endif
#line 1
"""


def load(path):
    table = tomllib.loads(path.read_text())
    names = set()
    for number, mutant in enumerate(table["mutant"], 1):
        mutant["number"] = number
        if mutant["name"] in names:
            sys.exit(f"{path}: two mutants are called {mutant['name']}")
        names.add(mutant["name"])
    return table


def place(mutant, text):
    """Where the mutated text begins; an error text where that is not one place."""
    whole = mutant.get("after", "") + mutant["old"]
    found = [m.start() for m in re.finditer(re.escape(whole), text)]
    if len(found) != 1:
        return None, f"{mutant['name']}: {len(found)} places in {mutant['file']}, not 1"
    return found[0] + len(mutant.get("after", "")), None


def instrumented(mutants, text):
    """The text of a file with all its mutants."""
    edits = []
    for mutant in mutants:
        at, error = place(mutant, text)
        if error:
            sys.exit(error)
        old, new, n = mutant["old"], mutant["new"], mutant["number"]
        if mutant.get("statement", False):
            both = f"if (hmmjit_mutant({n})) {{ {new} }} else {{ {old} }}"
        else:
            both = f"(hmmjit_mutant({n}) ? ({new}) : ({old}))"
        edits.append((at, at + len(old), both, mutant["name"]))
    edits.sort(reverse=True)
    for later, earlier in zip(edits, edits[1:]):
        if earlier[1] > later[0]:
            sys.exit(f"{earlier[3]} and {later[3]} overlap")
    for begin, end, both, _ in edits:
        text = text[:begin] + both + text[end:]
    return DECLARATION + text


def check(mutants):
    errors = []
    for file in sorted({m["file"] for m in mutants}):
        path = TREE / file
        if not path.exists():
            errors.append(f"{file}: no such file")
            continue
        text = path.read_text()
        errors += [e for m in mutants if m["file"] == file for e in [place(m, text)[1]] if e]
        if not errors:
            instrumented([m for m in mutants if m["file"] == file], text)
    for mutant in mutants:
        if mutant["old"] == mutant["new"]:
            errors.append(f"{mutant['name']}: nothing is changed")
        if not mutant.get("seen_by") and not mutant.get("equivalent"):
            errors.append(f"{mutant['name']}: neither `seen_by` nor `equivalent`")
    for error in errors:
        print(error)
    print(f"{len(mutants)} mutants, {len(errors)} errors")
    return 1 if errors else 0


def copy_tree(copy, mutants):
    """Writes only what differs, so that a second run builds little."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TREE, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    wanted = set()
    for name in listed:
        source = TREE / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        of_file = [m for m in mutants if m["file"] == name]
        if of_file:
            content = instrumented(of_file, content.decode()).encode()
        target = copy / name
        wanted.add(target)
        if target.exists() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        shutil.copymode(source, target)


def build(copy, targets, jobs):
    def run(*command):
        with open(copy / "build.log", "ab") as log:
            if subprocess.run(command, cwd=copy, stdout=log, stderr=log).returncode != 0:
                sys.exit(f"{' '.join(command)} failed: see {copy / 'build.log'}")
    run("cmake", "--preset", "release")
    run("cmake", "--build", "--preset", "release", f"-j{jobs}", "--target", *targets, "--", "-k0")


class Program:
    def __init__(self, copy, name):
        found = [p for p in (copy / "build" / "release" / "tests").rglob(name) if p.is_file()]
        if len(found) != 1:
            sys.exit(f"{name}: {len(found)} programs of this name")
        self.path = found[0]
        self.digest = hashlib.sha256(self.path.read_bytes()).hexdigest()

    def run(self, number, tests, limit):
        """None where all passes, else what was seen first."""
        environment = {**os.environ, "HMMJIT_MUTANT": str(number)}
        command = [self.path, "--gtest_fail_fast", f"--gtest_filter={tests}"]
        try:
            done = subprocess.run(command, env=environment, timeout=limit, cwd=self.path.parent,
                                  capture_output=True, text=True, errors="replace")
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace")
            return "TIME LIMIT in " + self.last(text)
        if done.returncode == 0:
            if re.search(r"Running 0 tests", done.stdout):
                sys.exit(f"{self.path.name} has no test {tests}")
            return None
        if done.returncode == 1:
            failed = re.findall(r"^\[  FAILED  \] (\S+)", done.stdout, re.M)
            return failed[0].rstrip(",") if failed else "exit status 1"
        return f"CRASH ({done.returncode}) in " + self.last(done.stdout)

    @staticmethod
    def last(text):
        begun = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
        return begun[-1] if begun else "?"


class Kept:
    """Results of runs, in a file that is complete after each of them. Several threads may ask."""

    def __init__(self, path, again):
        self.path = path
        self.results = json.loads(path.read_text()) if path.exists() and not again else {}
        self.lock = threading.Lock()  # of the results, of their file and of the table of locks
        self.locks = collections.defaultdict(threading.Lock)  # of a key: nothing is made twice

    def get(self, key, make):
        key = json.dumps(key)
        with self.lock:
            of_key = self.locks[key]
        with of_key:
            with self.lock:
                if key in self.results:
                    return self.results[key]
            result = make()
            with self.lock:
                self.results[key] = result
                fresh = self.path.with_suffix(".tmp")
                fresh.write_text(json.dumps(self.results, indent=0))
                fresh.rename(self.path)
            return result


def find_recorded_data():
    """The copy lies elsewhere than the tree, beside or above which the tests look for it."""
    for above in (TREE, *TREE.parents):
        if "HMMJIT_SHARED" not in os.environ and (above / "shared" / "data").is_dir():
            os.environ["HMMJIT_SHARED"] = str(above / "shared")
    if "HMMJIT_SHARED" not in os.environ:
        print("no recorded data (HMMJIT_SHARED): tests that need it are skipped and see nothing")


def folder(file):
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] in ("engine", "tools") else parts[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", type=pathlib.Path, default=HERE / "mutants.toml")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the copy; kept")
    parser.add_argument("--limit", type=float, default=240, help="seconds of one program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="of the build, and mutants that are run at once; one for each core")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--quick", action="store_true", help="only the tests of `seen_by`")
    parser.add_argument("names", nargs="*", help="mutants or folders; none: all")
    arguments = parser.parse_args()
    table = load(arguments.list)
    mutants, programs = table["mutant"], table["programs"]
    if arguments.check:
        return check(mutants)
    if arguments.work is None:
        parser.error("--work names the folder to build in")
    names = arguments.names
    chosen = [m for m in mutants
              if not names or m["name"] in names or folder(m["file"]) in names]
    find_recorded_data()
    copy = arguments.work.resolve()
    copy.mkdir(parents=True, exist_ok=True)
    copy_tree(copy, chosen)  # only these: the fewer files differ from the tree, the less is compiled

    def of_folder(mutant):
        """[(program, filter)], the longest matching folder's."""
        folders = [f for f in programs if mutant["file"].startswith(f)]
        return [p.split(":", 1) for p in programs[max(folders, key=len)]] if folders else []

    targets = sorted({p for m in chosen
                      for p in [s.split(":", 1)[0] for s in m.get("seen_by", [])] +
                      ([] if arguments.quick else [name for name, _ in of_folder(m)])})
    build(copy, targets, arguments.jobs)
    ready = {name: Program(copy, name) for name in targets}
    kept = Kept(copy / "results.json", arguments.again)

    def run(number, name, tests):
        return ready[name].run(number, tests, arguments.limit if number else 4 * arguments.limit)

    def found(mutant):
        """What saw the mutant first; None where nothing did."""
        tries = [s.split(":", 1) for s in mutant.get("seen_by", [])]
        if not arguments.quick:
            tries += of_folder(mutant)
        for name, tests in tries:
            key = [mutant["number"], mutant["old"], mutant["new"], tests, ready[name].digest]
            verdict = kept.get(key, lambda: run(mutant["number"], name, tests))
            if verdict:
                fails = kept.get([0, tests, ready[name].digest], lambda: run(0, name, tests))
                if fails:
                    sys.exit(f"{name}:{tests} fails without any mutant: {fails}")
                return verdict
        return None

    def timed(mutant):
        begun = time.monotonic()
        return found(mutant), time.monotonic() - begun

    score = collections.defaultdict(collections.Counter)
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        try:
            for mutant, run_of in zip(chosen, [pool.submit(timed, m) for m in chosen]):
                verdict, seconds = run_of.result()
                equivalent = mutant.get("equivalent")
                kind = "seen" if verdict else "equivalent" if equivalent else "survived"
                for row in (folder(mutant["file"]), "all"):
                    score[row][kind] += 1
                text = verdict or (kind if kind == "equivalent" else "SURVIVED")
                print(f"{mutant['number']:3} {mutant['name']:52} {text} ({seconds:.1f} s)",
                      flush=True)
        except BaseException:  # an error, or the user's interrupt: those that wait are not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"\n{len(chosen)} mutants in {time.monotonic() - begun:.0f} s, {arguments.jobs} at once")
    print("\n| folder | mutants | equivalent | seen | survived | seen of those not equivalent |")
    print("|---|---|---|---|---|---|")
    for row, counts in sorted(score.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        of = counts["seen"] + counts["survived"]
        print(f"| {row} | {counts.total()} | {counts['equivalent']} | {counts['seen']} | "
              f"{counts['survived']} | {100 * counts['seen'] / max(of, 1):.0f} % |")
    return 1 if score["all"]["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
