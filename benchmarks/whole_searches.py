#!/usr/bin/env python3
"""Whole searches with a GPU: each row run by several versions of the program in turn, outputs compared.

usage: whole_searches.py --program NAME=PATH [--program NAME=PATH ...] --models FILE --targets FILE
                         [--library FILE] [--one-model FILE] [--rows ROW ...] [options]

Rows, with the targets copied under the names they have as often as each needs (--times):
  start    the models x the targets: the first run with an empty kernel cache, then the second, third and
           fourth; then, with an empty user cache, with the kernels of these runs installed
  warm     the same search, warm cache
  large    the models x many copies, from a database file: empty cache, then again
  huge     the models x still more copies, from a database file, warm cache
  rich     the library x the targets, warm cache
  one      one model x the most copies: cpu, auto, gpu
  cpu      the models x the targets without the GPU; outputs compared with those of `warm`

Prints a line per run, then a table with the medians; writes all to --json. Exits 1 if outputs of a row differ
between versions or a run fails. Lines of comments are left out of comparisons.
"""
import argparse
import ctypes
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ROWS = ("start", "warm", "large", "huge", "rich", "one", "cpu")


class Energy:
    """Energy that all GPUs have used since their driver was loaded, in joules; None if the driver does not report it."""

    def __init__(self):
        self.devices = []
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        count = ctypes.c_uint()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return
        for number in range(count.value):
            device = ctypes.c_void_p()
            if self.library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(device)) == 0:
                self.devices.append(device)

    def joules(self):
        total = 0
        for device in self.devices:
            millijoules = ctypes.c_ulonglong()
            if self.library.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(millijoules)):
                return None
            total += millijoules.value
        return total / 1000 if self.devices else None


def digest(path):
    out = hashlib.sha256()
    with open(path, "rb") as stream:
        for line in stream:
            if not line.startswith((b"#", b"[ok]", b"\n")):
                out.update(line)
    return out.hexdigest()[:12]


class Table:
    def __init__(self, arguments):
        self.arguments = arguments
        self.programs = dict(p.split("=", 1) for p in arguments.program)
        self.energy = Energy()
        self.runs = []
        self.failures = 0

    def at(self, name):
        return os.path.join(self.arguments.work, name)

    def cache(self, program):
        return self.at(f"cache.{program}")

    def empty_cache(self, program=None):
        """The folder of a program's cache, or of another one, now empty."""
        folder = self.cache(program) if program else self.at("empty")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        return folder

    def run(self, row, program, models, targets, device="gpu", **more):
        """One search; its outputs' digests must be those of the row's other runs."""
        prefix = self.at("run")
        command = [self.programs[program], "search", "--quiet", "--cpu", str(self.arguments.cpu), "--device", device,
                   "--stats", prefix + ".json", "-o", prefix + ".out", "--tblout", prefix + ".tbl",
                   "--domtblout", prefix + ".dom", models, targets]
        environment = {**os.environ, "HMMJIT_CACHE_DIR": self.cache(program), **more}
        joules, start = self.energy.joules(), time.perf_counter()
        child = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        found = {"row": row, "program": program, "exit": child.returncode, "wall": wall,
                 "core_seconds": usage.ru_utime + usage.ru_stime, "host_bytes": usage.ru_maxrss * 1024,
                 "joules": None if joules is None else self.energy.joules() - joules}
        if child.returncode == 0:
            with open(prefix + ".json") as stream:
                found["stats"] = json.load(stream)
            found["digests"] = [digest(f"{prefix}.{output}") for output in ("out", "tbl", "dom")]
        else:
            self.failures += 1
        self.runs.append(found)
        gpu = found.get("stats", {}).get("gpu", {})
        print(f"{row:14} {program:8} {wall:8.3f} s {found['core_seconds']:8.1f} core-s "
              f"{found['host_bytes'] >> 20:7} MB host {gpu.get('peak_device_bytes', 0) >> 20:7} MB device "
              f"busy {gpu.get('busy_seconds', 0):7.3f} s "
              + ("" if found["joules"] is None else f"{found['joules']:7.0f} J ")
              + f"{gpu.get('state', '')} {' '.join(found.get('digests', []))} {errors.strip()[:200]}", flush=True)

    def in_turn(self, count):
        """Each program `count` times, first and last by turns."""
        names = list(self.programs)
        for number in range(count):
            yield from names if number % 2 == 0 else reversed(names)

    def copies(self, name, times):
        """A database file of the targets, `times` over."""
        path = self.at(name + ".hdb")
        if not os.path.exists(path):
            fasta = self.at(name + ".fasta")
            with open(self.arguments.targets, "rb") as source, open(fasta, "wb") as out:
                for _ in range(times):
                    source.seek(0)
                    shutil.copyfileobj(source, out, 1 << 24)
            last = list(self.programs.values())[-1]
            subprocess.run([last, "db", "build", "--quiet", "--output", path, fasta], check=True)
            os.remove(fasta)
        return path

    def compare(self, rows):
        seen = {tuple(r["digests"]) for r in self.runs if r["row"] in rows and "digests" in r}
        if len(seen) > 1:
            print(f"DIFFERENT outputs: {' '.join(rows)}: {seen}", flush=True)
            self.failures += 1

    def rows(self):
        a = self.arguments
        chosen = a.rows
        if {"start", "warm", "cpu"} & set(chosen):
            small = self.copies("small", a.times[0])
        if "large" in chosen:
            many = self.copies("many", a.times[1])
        if {"huge", "one"} & set(chosen):
            most = self.copies("most", a.times[2])
        if "start" in chosen:
            for program in self.programs:
                self.empty_cache(program)
            for number in ("first", "second", "third", "fourth"):
                for program in self.programs:
                    self.run(number, program, a.models, small)
            for program in self.programs:
                self.run("installed", program, a.models, small, HMMJIT_CACHE_DIR=self.empty_cache(),
                         HMMJIT_CACHE_SYSTEM_DIR=self.cache(program))
            self.compare(("first", "second", "third", "fourth", "installed", "warm", "cpu"))
        if "warm" in chosen:
            for program in self.in_turn(a.repeats):
                self.run("warm", program, a.models, small)
        if "cpu" in chosen:
            for program in self.in_turn(1):
                self.run("cpu", program, a.models, small, device="cpu")
        self.compare(("first", "second", "third", "fourth", "installed", "warm", "cpu"))
        if "large" in chosen:
            for program in self.programs:
                self.run("large, empty", program, a.models, many, HMMJIT_CACHE_DIR=self.empty_cache())
            for program in self.in_turn(max(1, a.repeats // 2)):
                self.run("large", program, a.models, many)
            self.compare(("large", "large, empty"))
        if "huge" in chosen:
            for program in self.in_turn(1):
                self.run("huge", program, a.models, most)
            self.compare(("huge",))
        if "rich" in chosen:
            for program in self.programs:  # fill the cache
                self.run("rich, filling", program, a.library, a.targets)
            for program in self.in_turn(max(1, a.repeats // 2)):
                self.run("rich", program, a.library, a.targets)
            self.compare(("rich", "rich, filling"))
        if "one" in chosen:
            for device in ("gpu", "gpu", "cpu", "auto"):
                for program in self.in_turn(1):
                    self.run(f"one, {device}", program, a.one_model, most, device=device)
            self.compare(("one, gpu", "one, cpu", "one, auto"))

    def print_table(self):
        names = list(self.programs)
        print("\n| row | " + " | ".join(f"{n}, s" for n in names) + " | ratio | "
              + " | ".join(f"{n}, core-s" for n in names) + " | host, MB | device, MB |")
        print("|---" * (5 + 2 * len(names) - 1) + "|")
        for row in dict.fromkeys(r["row"] for r in self.runs):
            of = {n: [r for r in self.runs if r["row"] == row and r["program"] == n and r["exit"] == 0] for n in names}
            if not all(of.values()):
                print(f"| {row} | failed |")
                continue
            wall = [statistics.median(r["wall"] for r in of[n]) for n in names]
            cores = [statistics.median(r["core_seconds"] for r in of[n]) for n in names]
            last = of[names[-1]][-1]
            print(f"| {row} | " + " | ".join(f"{w:.2f}" for w in wall) + f" | {wall[0] / wall[-1]:.2f} | "
                  + " | ".join(f"{c:.1f}" for c in cores) + f" | {last['host_bytes'] >> 20} | "
                  f"{last['stats']['gpu'].get('peak_device_bytes', 0) >> 20} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--models", required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--library")
    parser.add_argument("--one-model")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=["start", "warm", "cpu"])
    parser.add_argument("--times", nargs=3, type=int, default=[1, 17, 58],
                        help="copies of the targets in start, warm and cpu; in large; in huge and one")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--cpu", type=int, default=os.cpu_count())
    parser.add_argument("--work", default="/tmp/hmmjit_whole_searches")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if "rich" in arguments.rows and not arguments.library:
        parser.error("row rich: --library names its models")
    if "one" in arguments.rows and not arguments.one_model:
        parser.error("row one: --one-model names its model")
    os.makedirs(arguments.work, exist_ok=True)
    table = Table(arguments)
    for program in table.programs:
        os.makedirs(table.cache(program), mode=0o700, exist_ok=True)
    table.rows()
    table.print_table()
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(table.runs, out, indent=1)
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main())
