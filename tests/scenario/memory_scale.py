#!/usr/bin/env python3
"""`--mem` at scale, run by hand: a million hits of one model, also as tables by target (--as hmmscan), one target of 50
million residues, and all of them in a control group of 64 MiB. Takes minutes of two cores and 2 GB in $TMPDIR.
tests/scenario/memory_test.py is the small version.

    tests/scenario/memory_scale.py PROGRAM [--hits N] [--residues N]

Prints a row for each search: exit status, largest resident memory, its bound (--mem, a tenth and 24 MiB), CPU seconds,
hits, and whether all outputs equal those without a bound. Exit status 1 if a bound is exceeded, an output differs, or a
search in the control group ends with a status other than 0 and 5.
"""
import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile

import memory_test

MIB = 1 << 20
RESIDUES = memory_test.RESIDUES
OUTPUTS = ("-o", "--tblout", "--domtblout", "--pfamtblout", "--tsv", "--json", "-A", "--a3m", "--gff", "--bed", "--fasta",
           "--domfasta")
SCAN_OUTPUTS = ("-o", "--tblout", "--domtblout")  # with --as hmmscan


def near_copy(generator, domain):
    copy = list(domain)
    for _ in range(3):
        copy[generator.randrange(len(copy))] = generator.choice(RESIDUES)
    return "".join(copy)


def make_inputs(folder, hits, residues):
    generator = random.Random(20263)
    domain = "".join(generator.choices(RESIDUES, k=30))
    alignment, model = os.path.join(folder, "m.sto"), os.path.join(folder, "m.hmm")
    with open(alignment, "w") as file:
        file.write(f"# STOCKHOLM 1.0\nfamily {domain}\n//\n")
    subprocess.run(["hmmbuild", "--amino", "-n", "family", model, alignment], check=True, stdout=subprocess.DEVNULL)
    many, long = os.path.join(folder, "many.fasta"), os.path.join(folder, "long.fasta")
    with open(many, "w") as file:
        for number in range(hits):
            file.write(f">t{number} a near copy\n{near_copy(generator, domain)}\n")
    with open(long, "w") as file:
        noise = "".join(generator.choices(RESIDUES, k=100_000))
        file.write(">long\n")
        written = 0
        while written < residues:  # a copy of the domain in every 100,000 residues
            piece = (noise[written // 100_000 % 1000:] + near_copy(generator, domain))[:residues - written]
            file.write(piece + "\n")
            written += len(piece)
        file.write(f">next\n{domain}\n")
    return model, {"hits": many, "hits by target": many, "long": long}


def digests(folder, options):
    """Digests of the reproducible lines of each output, and the number of rows of --domtblout."""
    found, rows = {}, 0
    for option in options:
        digest = hashlib.sha256()
        path = os.path.join(folder, "out" + option)
        if not os.path.exists(path):
            return None, 0
        with open(path, "rb") as file:
            for line in file:
                if (line.startswith(b"#") and not line.startswith(b"#=")) or line.startswith(b"DATE ") or \
                        b'"record":"run"' in line:
                    continue
                digest.update(line)
                rows += option == "--domtblout"
        os.unlink(path)
        found[option] = digest.hexdigest()
    return found, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--hits", type=int, default=1_000_000)
    parser.add_argument("--residues", type=int, default=50_000_000)
    parser.add_argument("--cpu", default="2")
    arguments = parser.parse_args()
    program = os.path.realpath(arguments.program)
    folder = tempfile.mkdtemp(prefix="hmmjit-memory-")
    failed = False
    try:
        model, targets = make_inputs(folder, arguments.hits, arguments.residues)

        def search(name, memory, group=None):
            scan = name == "hits by target"
            options = SCAN_OUTPUTS if scan else OUTPUTS
            command = [program, "search", "--quiet", "--device", "cpu", "--cpu", arguments.cpu, "--mem", memory]
            for option in options:
                command += [option, os.path.join(folder, "out" + option)]
            if scan:
                command += ["--as", "hmmscan"]
            command += [model, targets[name]]

            def join():
                if group is not None:
                    with open(os.path.join(group.folder, "cgroup.procs"), "w") as file:
                        file.write(str(os.getpid()))
            with tempfile.TemporaryFile() as errors:
                process = subprocess.Popen(command, preexec_fn=join, stdout=subprocess.DEVNULL, stderr=errors)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                errors.seek(0)
                text = errors.read().decode().strip()
            outputs, rows = digests(folder, options)
            return (process.returncode, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, rows, outputs, text)

        print("| targets | `--mem` | exit | resident, MiB | bound, MiB | CPU s | domains | outputs |\n"
              "|---|---|---|---|---|---|---|---|", flush=True)
        unbounded = {}
        for name, memory in (("hits", 200), ("hits by target", 200), ("long", 400)):
            for bounded in (False, True):
                code, peak, seconds, rows, outputs, text = search(name, f"{memory}M" if bounded else "8G")
                if bounded:
                    same = outputs == unbounded[name]
                    bound = memory * 1.1 + 24
                    failed |= code != 0 or peak > bound or not same
                    print(f"| {name} | {memory}M | {code} | {peak:.0f} | {bound:.0f} | {seconds:.0f} | {rows} | "
                          f"{'the same' if same else 'DIFFERENT'} | {text}", flush=True)
                else:
                    unbounded[name] = outputs
                    failed |= code != 0 or not rows
                    print(f"| {name} | 8G | {code} | {peak:.0f} | | {seconds:.0f} | {rows} | | {text}", flush=True)
        for name in ("hits", "hits by target", "long"):
            group = memory_test.ControlGroup(64 * MIB)
            try:
                code, peak, seconds, rows, outputs, text = search(name, "200M", group)
            finally:
                group.remove()
            kept = ("none" if outputs is None else
                    "the same" if outputs == unbounded[name] else "DIFFERENT")
            failed |= code not in (0, 5) or kept == "DIFFERENT" or (code == 5) != (kept == "none") or \
                (code == 5 and text.count("\n") > 0)
            print(f"| {name}, in a group of 64 MiB | 200M | {code} | {peak:.0f} | | {seconds:.0f} | {rows} | {kept} | "
                  f"{text}", flush=True)
    finally:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
