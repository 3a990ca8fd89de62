#!/usr/bin/env python3
"""Replays all recorded runs of HMMER with one program, many at a time; for a program that is run by an emulator.

usage: replay_all.py [--jobs N] [--seconds S] [--short-first] [--results FILE] [--only PATTERN]... -- COMMAND...

COMMAND is hmmjit with what runs it, for instance: qemu-aarch64-static build/arm64/bin/hmmjit

--jobs     processors to be used (default: those of this machine)
--seconds  no run goes on for longer than this after the start; what was not completed then is listed
--short-first  the shortest runs are started first, for as many cases as fit into --seconds
--results  a file in which every completed case is noted; cases that it has already are not run again
--only     names of cases, as a shell pattern

The recorded runs are those of hmmsearch (data/expected) and those of phmmer, jackhmmer and hmmscan (data/programs) in the
folder $HMMJIT_SHARED, and are judged by the tools that lie beside them. Long runs are started first, unless
--short-first is given, with several threads of their own. Exit status 0: all cases ran and all files are identical; 1: a
file differs; 3: cases are left; 77: there are no recorded runs.
"""
import argparse
import fnmatch
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "scenario"))
import scenario  # noqa: E402

# CPU seconds of a cell of each filter and of the domain stage under qemu 7.2. They determine only the order of the runs and
# their numbers of threads.
COSTS = {"bias": 7e-9, "Vit": 70e-9, "Fwd": 400e-9}
ALL_PAIRS = 2.5e-9
SECONDS_OF_A_THREAD = 60
# hmmscan refuses a library that is not pressed; hmmjit scan needs no pressed files (docs/differences.md).
LEFT_OUT = ["sc_bad_notpressed"]


def estimated_seconds(report):
    """Estimated from the statistics that HMMER prints for each query."""
    if not os.path.exists(report):
        return 1.0
    with gzip.open(report, "rt", errors="replace") as file:
        text = file.read()
    total = 1.0
    for query in re.split(r"^//$", text, flags=re.MULTILINE):
        size = re.search(r"^Query (?:model|sequence)\(s\): +\d+ +\((\d+)", query, re.MULTILINE)
        targets = re.search(r"^Target (?:sequences|sequence\(s\)|model\(s\)): +(\d+) +\((\d+)", query, re.MULTILINE)
        if not size or not targets:
            continue
        cells = int(size[1]) * int(targets[2])
        total += ALL_PAIRS * cells
        for stage, cost in COSTS.items():
            passed = re.search(rf"^Passed {stage} filter: +(\d+)", query, re.MULTILINE)
            total += cost * cells / max(int(targets[1]), 1) * int(passed[1] if passed else 0)
    return total


class Case:
    def __init__(self, shared, kind, name):
        self.kind, self.name = kind, name
        self.label = f"{kind}/{name}"
        folder = os.path.join(shared, "data", "expected" if kind == "search" else os.path.join("programs", "expected"))
        self.estimate = estimated_seconds(os.path.join(folder, name + ".out.gz"))
        self.threads = 1
        self.process = None

    def start(self, shared, command, work):
        options = f"--quiet --cpu {self.threads}"
        program = shlex.join(command)
        tool = os.path.join(shared, "tools", "replay_expected.py" if self.kind == "search" else "replay_programs.py")
        words = [sys.executable, tool, "--data", os.path.join(shared, "data"), "--only", self.name, "--options=" + options]
        words += ["--program", program + " search" if self.kind == "search" else program]
        if self.kind == "programs":
            words += ["--program-hmmscan", program + " scan"]
        self.work = os.path.join(work, self.kind, self.name)
        os.makedirs(self.work)
        self.log = tempfile.TemporaryFile(dir=work)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(words + ["--work", self.work], stdout=self.log, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def ended(self):
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_seconds = usage.ru_utime + usage.ru_stime  # with those of its children
        return True

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def result(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().split("\n")
        shutil.rmtree(self.work, ignore_errors=True)
        judged = re.search(r"(\d+) of (\d+) files identical", lines[-1])
        return {"case": self.label, "identical": int(judged[1]) if judged else 0, "files": int(judged[2]) if judged else 1,
                "same": self.process.returncode == 0 and judged is not None,
                "seconds": round(time.monotonic() - self.begun, 1),
                "processor_seconds": round(self.processor_seconds, 1), "threads": self.threads,
                "estimate": round(self.estimate), "printed": [] if self.process.returncode == 0 else lines[-40:]}


def recorded_cases(shared, patterns):
    cases = []
    for kind, folder in (("search", "expected"), ("programs", "programs/expected")):
        with open(os.path.join(shared, "data", folder, "commands.tsv"), encoding="utf-8") as file:
            names = [line.split("\t")[0] for line in file.read().splitlines()[1:]]
        cases += [Case(shared, kind, name) for name in names
                  if name not in LEFT_OUT and any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    return sorted(cases, key=lambda case: -case.estimate)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--short-first", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--only", action="append")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    shared = scenario.shared_folder()
    if shared is None:
        print("SKIPPED, NOTHING REPLAYED: the recorded runs are not here; set HMMJIT_SHARED to their folder")
        return scenario.SKIPPED
    shared = os.path.abspath(shared)
    command = [os.path.abspath(word) if os.path.exists(word) else word for word in arguments.command]
    deadline = time.monotonic() + arguments.seconds
    results = []
    if arguments.results and os.path.exists(arguments.results):
        with open(arguments.results, encoding="utf-8") as file:
            results = [json.loads(line) for line in file]
    known = {result["case"] for result in results}
    cases = recorded_cases(shared, arguments.only or ["*"])
    if arguments.short_first:
        cases.reverse()
    waiting = [case for case in cases if case.label not in known]
    print(f"{len(cases)} recorded cases, {len(cases) - len(waiting)} known already, {arguments.jobs} processors", flush=True)
    running, left = [], []
    work = tempfile.mkdtemp(prefix="hmmjit-replay-")
    try:
        while waiting or running:
            if time.monotonic() > deadline:
                break
            free = arguments.jobs - sum(case.threads for case in running)
            for case in list(waiting):
                wanted = min(arguments.jobs, 1 + int(case.estimate / SECONDS_OF_A_THREAD))
                if wanted > free:
                    if wanted > 1:
                        break  # the next to be started; shorter ones must not go on taking its processors
                    continue
                case.threads = wanted
                case.start(shared, command, work)
                waiting.remove(case)
                running.append(case)
                free -= wanted
            for case in list(running):
                if not case.ended():
                    continue
                running.remove(case)
                result = case.result()
                results.append(result)
                if arguments.results:
                    with open(arguments.results, "a", encoding="utf-8") as file:
                        file.write(json.dumps(result) + "\n")
                print(f"{'ok  ' if result['same'] else 'DIFF'} {case.label}: {result['identical']} of {result['files']} files, "
                      f"{result['seconds']} s, {case.threads} threads, {result['processor_seconds']} s of processors", flush=True)
                for line in result["printed"]:
                    print("    " + line)
            time.sleep(0.02)
        left = waiting + running
    finally:
        for case in running:
            case.stop()
        shutil.rmtree(work, ignore_errors=True)
    chosen = {case.label for case in cases}
    results = [result for result in results if result["case"] in chosen]
    for result in results:
        if not result["same"]:
            print("DIFFERS", result["case"])
    for case in left:
        print("NOT COMPLETED", case.label)
    print(f"{len(results)} of {len(cases)} cases: {sum(r['identical'] for r in results)} of "
          f"{sum(r['files'] for r in results)} files identical, {sum(not r['same'] for r in results)} cases differ, "
          f"{len(left)} not completed")
    if any(not result["same"] for result in results):
        return 1
    return 3 if left or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
