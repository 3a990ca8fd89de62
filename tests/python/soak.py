"""Mixed searches in one process for some time: its memory, threads and files must not grow.

usage: soak.py PACKAGE LIBRARY MODELS TARGETS [SECONDS]

PACKAGE: the folder of the Python package, LIBRARY: libhmmjit.so, MODELS and TARGETS: files. Searches are collected,
iterated over, closed early, cancelled, failed by callbacks and by input, two at a time, with small bounds on
memory, from files, memory and a database that is replaced meanwhile; reports are made of some. After a
quarter of the time (a minute at most) and LEAST_ROUNDS the resident memory is noted: its highest value in the last
quarter of the later rounds may not exceed that in the first by more than a tenth, or 8 MiB. Descriptors
and threads may not grow at all. Prints a line every tenth of the time. A busy machine gets the time for LEAST_ROUNDS more.
Exit status 0: level.
"""
import gc
import os
import random
import sys
import tempfile
import threading
import time

LONGEST_WARM_UP = 60
LEAST_ROUNDS = 10
GROWTH, SLACK = 1.1, 8 << 20


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def threads():
    return len(os.listdir("/proc/self/task"))


class Stopped(Exception):
    pass


class Works:
    def __init__(self, hmmjit, models, targets, folder, seed):
        self.hmmjit, self.models, self.targets, self.folder = hmmjit, models, targets, folder
        self.random = random.Random(seed)
        self.loaded_models, self.loaded_targets = hmmjit.Models.load(models), hmmjit.Targets.load(targets)
        self.database = os.path.join(folder, "targets.hjdb")
        hmmjit.build_database([targets], self.database)
        with open(models, "rb") as file:
            self.bytes = file.read()
        self.all = [self.collected, self.from_files, self.small_memory, self.of_database, self.iterated, self.closed_early,
                    self.dropped, self.cancelled, self.failing_callback, self.bad_input, self.bad_option, self.two_at_once,
                    self.reported, self.replaced_database]

    def options(self):
        return {"threads": self.random.choice((1, 2, 3)), "device": "cpu", "E": self.random.choice((10, 1e-5, 1000)),
                "alignments": self.random.random() < 0.7}

    def collected(self):
        assert len(self.hmmjit.search(self.loaded_models, self.loaded_targets, **self.options())) > 0

    def from_files(self):
        assert len(self.hmmjit.search(self.models, self.targets, **self.options())) > 0

    def small_memory(self):
        self.hmmjit.search(self.models, self.targets, memory=self.random.choice((65536, 1 << 20)), **self.options())

    def of_database(self):
        self.hmmjit.search(self.loaded_models, self.database, **self.options())

    def iterated(self):
        for result in self.hmmjit.search_iter(self.models, self.targets, buffer=1, **self.options()):
            result.table()

    def closed_early(self):
        found = self.hmmjit.search_iter(self.models, self.targets, buffer=1, **self.options())
        next(found)
        found.close()

    def dropped(self):
        next(self.hmmjit.search_iter(self.models, self.targets, buffer=1, **self.options()))

    def cancelled(self):
        try:
            self.hmmjit.search(self.models, self.database, progress=lambda _: False, interval=0.001, **self.options())
        except self.hmmjit.Cancelled:
            pass

    def failing_callback(self):
        def fail(_):
            raise Stopped
        try:
            self.hmmjit.search(self.models, self.database, progress=fail, interval=0.001, **self.options())
        except Stopped:
            pass

    def refused(self, *arguments, **options):
        try:
            self.hmmjit.search(*arguments, **options)
        except (self.hmmjit.Error, ValueError, TypeError):
            return
        raise AssertionError("nothing was refused")

    def bad_input(self):
        cut = self.bytes[:self.random.randrange(len(self.bytes) // 2, len(self.bytes) - 10)]
        path = os.path.join(self.folder, "cut.hmm")
        with open(path, "wb") as file:
            file.write(cut.rstrip(b"/\n"))
        self.refused(path, self.targets, **self.options())

    def bad_option(self):
        self.refused(self.models, self.targets, Z=float("inf"), threads=1)

    def two_at_once(self):
        both = [threading.Thread(target=self.collected), threading.Thread(target=self.of_database)]
        for one in both:
            one.start()
        for one in both:
            one.join()

    def reported(self):
        found = self.hmmjit.search(self.loaded_models, self.loaded_targets, device="cpu", threads=1)
        for kind in ("tblout", "domtblout", "main", "json"):
            found.report(kind)
        found.table("domains")

    def replaced_database(self):
        self.hmmjit.build_database([self.targets], self.database)


def main():
    package, library, models, targets = sys.argv[1:5]
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 1800
    os.environ["HMMJIT_LIBRARY"] = library
    sys.path.insert(0, package)
    import hmmjit
    seed = int(os.environ.get("HMMJIT_TEST_SEED", random.SystemRandom().randrange(1, 2**31)))
    print(f"random seed {seed} (HMMJIT_TEST_SEED repeats it)", flush=True)
    warm_up = min(LONGEST_WARM_UP, seconds / 4)
    with tempfile.TemporaryDirectory(prefix="hmmjit-soak-") as folder:
        works = Works(hmmjit, models, targets, folder, seed)
        begun, count, shown = time.monotonic(), 0, 0
        memory, level = [], None
        while (passed := time.monotonic() - begun) < seconds or len(memory) < LEAST_ROUNDS:
            works.all[count % len(works.all)]()
            count += 1
            if count % len(works.all):
                continue
            gc.collect()
            if passed >= warm_up and count >= LEAST_ROUNDS * len(works.all):
                level = level or (descriptors(), threads())
                memory.append(resident())
            if passed >= shown * seconds / 10:
                print(f"{passed:6.0f} s {count:6} searches {resident() / 2**20:7.1f} MiB {descriptors()} descriptors "
                      f"{threads()} threads", flush=True)
                shown += 1
        gc.collect()  # a search that waits for it holds a descriptor
        deadline = time.monotonic() + 10
        while (grown := any(map(int.__gt__, now := (descriptors(), threads()), level))) and time.monotonic() < deadline:
            time.sleep(0.1)  # threads that are just ending
    highest = [max(memory[len(memory) * n // 4:len(memory) * (n + 1) // 4]) for n in range(4)]
    print("highest resident memory of each quarter after the warm-up, MiB:",
          ", ".join(f"{value / 2**20:.1f}" for value in highest))
    if highest[-1] > max(highest[0] * GROWTH, highest[0] + SLACK):
        print("the resident memory grows")
        return 1
    if grown:
        print(f"descriptors and threads: {level} then, {now} now")
        return 1
    print(f"{count} searches, level")
    return 0


if __name__ == "__main__":
    sys.exit(main())
