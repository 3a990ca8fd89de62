#!/usr/bin/env python3
"""Searches a part of a database that lies on a slow file system, with advice to the system about what comes next and
without, beside the bound: the bytes of the part's residues at the rate of the file system.

usage: range_reading.py --model FILE --database FILE [--part I/N] [--rate BYTES ...] [--latency SECONDS ...]
                        [--hmmjit PROGRAM] [--repeats N]

Needs root, since slow_file_system.py is mounted, and a C compiler, since advice is taken away by a preloaded library.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

WITHOUT_ADVICE = """
#include <stddef.h>
int madvise(void* at, size_t size, int advice) { (void)at, (void)size, (void)advice; return 0; }
int posix_fadvise(int f, long at, long size, int advice) { (void)f, (void)at, (void)size, (void)advice; return 0; }
int posix_fadvise64(int f, long at, long size, int advice) { (void)f, (void)at, (void)size, (void)advice; return 0; }
long readahead(int f, long at, size_t size) { (void)f, (void)at, (void)size; return 0; }
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hmmjit", default="hmmjit")
    parser.add_argument("--model", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--part", default="3/8")
    parser.add_argument("--rate", type=float, nargs="+", default=[20e6, 100e6])
    parser.add_argument("--latency", type=float, nargs="+", default=[0.001, 0.01])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_file_system.py")
    sections = json.loads(subprocess.run([options.hmmjit, "db", "info", "--json", options.database], check=True,
                                         capture_output=True).stdout)["sections"]
    of = int(options.part.partition("/")[2])
    wanted = next(section["bytes"] for section in sections if section["name"] == "residues") / of
    with tempfile.TemporaryDirectory() as folder:
        mount, plain, library = (os.path.join(folder, name) for name in ("mount", "advice.c", "advice.so"))
        os.mkdir(mount)
        with open(plain, "w") as source:
            source.write(WITHOUT_ADVICE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, plain], check=True)

        def search(path, preload):
            part = os.path.join(folder, "part")
            begun = time.monotonic()
            subprocess.run([options.hmmjit, "search", "--quiet", "--device", "cpu", "--part", options.part, "--part-file", part,
                            options.model, path], check=True, env={**os.environ, "LD_PRELOAD": preload})
            seconds = time.monotonic() - begun
            os.remove(part)
            return seconds

        in_memory = min(search(options.database, "") for _ in range(options.repeats))
        print(f"{wanted / 1e6:.1f} MB of residues; searched in {in_memory:.2f} s where they are in memory", flush=True)
        for rate in options.rate:
            for latency in options.latency:
                found = []
                for preload in ("", library):
                    times = []
                    for _ in range(options.repeats):
                        process = subprocess.Popen([sys.executable, server, os.path.dirname(os.path.abspath(options.database)),
                                                    mount, "--rate", str(rate), "--latency", str(latency)])
                        while not os.path.ismount(mount):
                            time.sleep(0.01)
                        times.append(search(os.path.join(mount, os.path.basename(options.database)), preload))
                        subprocess.run(["umount", mount], check=True)
                        process.wait()
                    found.append(min(times))
                print(f"{rate / 1e6:.0f} MB/s, {latency * 1e3:g} ms: bound {wanted / rate:.2f} s, with advice {found[0]:.2f} s, "
                      f"without {found[1]:.2f} s", flush=True)


if __name__ == "__main__":
    main()
