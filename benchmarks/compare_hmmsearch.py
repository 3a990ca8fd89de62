#!/usr/bin/env python3
"""Core-seconds, wall time and peak memory of hmmjit search, hmmsearch and, where it is installed, PyHMMER on this machine.

usage: compare_hmmsearch.py [--program PATH] [--threads N ...] [--data recorded|debian|emitted]
                            [--device cpu|gpu|auto] [--cases GLOB ...] [--repeats N]
                            [--pyhmmer PYTHON] [--json FILE] [--check]

Below each line, from `--stats` of that run of hmmjit: billions of cells per second and core of the filters, reading
speed, and the share of the core-seconds that each stage took.

Data; without --data, the first of these that exists:
  recorded  the project's collection of public models and proteomes, which is not in this
            repository: in $HMMJIT_SHARED, else in a folder "shared" next to or above the source
            tree. One model, the 349-model Pfam mix and a composition-biased model (400.hmm), on the
            MMseqs2 example database and on all proteomes together, the masked one among them
            (31 M residues). The Pfam mix on all of them runs with two threads as well: its peak
            resident memory must stay under 400 MB, else the script exits with 1.
  debian    Debian's packages hmmer-examples and mmseqs2-examples: one family, nine families, and
            those ten times over as a library of ninety models, on 20,000 UniProt sequences.
  emitted   hmmer-examples alone; the targets are made by hmmemit.

Each line is the best of --repeats runs, the whole process with start-up and output counted;
--check also compares the hits, and the script exits with 1 if they differ. hmmjit runs without a GPU
unless --device says otherwise. hmmsearch
runs with as many workers as hmmjit has threads ("--cpu 0" for one thread: its serial run). --pyhmmer names an interpreter that
has PyHMMER, which reads all targets first and then runs as many threads; its lines count its
start-up and the writing of the same table.
"""
import argparse
import fnmatch
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# A case, its threads, and its limit of resident memory in megabytes.
BOUNDED = ("pfam mix x all", 2, 400)

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tests", "scenario"))
import scenario  # noqa: E402


def unpack(path, target):
    if not os.path.exists(target):
        with (gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")) as source, \
                open(target, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    return target


def recorded_cases(data, work):
    mix = unpack(data + "/hmm/lib/pfam_mix.hmm.gz", work + "/pfam_mix.hmm")
    biased = unpack(data + "/hmm/cudampf/400.hmm.gz", work + "/400.hmm")
    one = data + "/hmm/hmmer/RRM_1.hmm"
    database = unpack(data + "/seq/mmseqs2_db.fasta.gz", work + "/mmseqs2_db.fasta")
    everything = work + "/all.fasta"
    with open(everything, "wb") as sink:
        for name in sorted(os.listdir(data + "/seq")):
            if name.endswith(".gz"):
                with gzip.open(f"{data}/seq/{name}", "rb") as source:
                    shutil.copyfileobj(source, sink, 1 << 20)
    return [("one model x mmseqs2", one, database), ("one model x all", one, everything),
            ("biased 400 x mmseqs2", biased, database), ("biased 400 x all", biased, everything),
            ("pfam mix x mmseqs2", mix, database), ("pfam mix x all", mix, everything)]


def emitted_cases(work):
    names = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "Pkinase.hmm", "LuxC.hmm"]
    models = [scenario.example_model(name, work) for name in names]
    targets = work + "/emitted.fasta"
    scenario.write_fasta(targets, scenario.emitted_targets(models, 42, 100, 30000))
    library = work + "/library.hmm"
    with open(library, "wb") as sink:
        for _ in range(10):
            for model in models:
                sink.write(scenario.run(["hmmconvert", model]).stdout)
    return [("one model x emitted", models[0], targets), ("60 models x emitted", library, targets)]


FAMILIES = ["RRM_1.hmm", "fn3.hmm", "2OG-FeII_Oxy_3.hmm", "Caudal_act.hmm", "globins4.hmm", "Pkinase.hmm",
            "LuxC.hmm", "Patched.hmm", "SMC_N.hmm"]
DATABASE = "/usr/share/doc/mmseqs2/example-data/DB.fasta.gz"


def debian_cases(work):
    models = [scenario.example_model(name, work) for name in FAMILIES]
    families, library = work + "/families.hmm", work + "/library.hmm"
    texts = [scenario.run(["hmmconvert", model]).stdout for model in models]
    for path, times in ((families, 1), (library, 10)):
        with open(path, "wb") as sink:
            sink.write(b"".join(texts) * times)
    database = unpack(DATABASE, work + "/database.fasta")
    return [("1 model x UniProt", models[0], database), ("9 models x UniProt", families, database),
            ("90 models x UniProt", library, database)]


PYHMMER = """
import sys
import pyhmmer
models, targets, table, threads = sys.argv[1:]
with pyhmmer.easel.SequenceFile(targets, digital=True) as file:
    block = file.read_block()
with pyhmmer.plan7.HMMFile(models) as file, open(table, "wb") as out:
    for hits in pyhmmer.hmmsearch(list(file), block, cpus=int(threads)):
        hits.write(out, format="domains", header=False)
"""


def measure(command):
    begun = time.time()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}: {message.decode()}")
    return {"wall": time.time() - begun, "cpu": usage.ru_utime + usage.ru_stime,
            "peak": usage.ru_maxrss / 1024}


def best(command, repeats):
    runs = [measure(command) for _ in range(repeats)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def describe_stages(path):
    """Two lines on where the run that wrote the --stats file `path` spent its time."""
    with open(path) as file:
        stages = json.load(file)["stages"]
    rates = "  ".join(f"{label} {stages[name]['gcups']:.2f}" for name, label in
                      (("ssv", "SSV"), ("msv", "MSV"), ("viterbi", "Viterbi"),
                       ("forward", "Forward")))
    shares = "  ".join(f"{name} {100 * stage['share']:.1f}" for name, stage in stages.items())
    return (f"    GCUPS per core: {rates}; reading "
            f"{stages['read']['megabytes_per_second']:.0f} MB/s\n    % of core-seconds: {shares}")


def rows(path):
    """Digests, since a child's peak memory begins with what this process holds."""
    with open(path, errors="replace") as table:
        return [hash(tuple(line.split())) for line in table if not line.startswith("#")]


def compared(theirs, ours):
    """The order of equal hits varies between runs of hmmsearch; nothing else may differ."""
    if theirs == ours:
        return "SAME"
    return "SAME, ties in another order" if sorted(theirs) == sorted(ours) else "DIFFER"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(SOURCE, "build/release/bin/hmmjit"))
    parser.add_argument("--threads", type=int, nargs="+",
                        default=sorted({1, len(os.sched_getaffinity(0))}))
    parser.add_argument("--data", choices=("recorded", "debian", "emitted"))
    parser.add_argument("--device", default="cpu", help="of hmmjit")
    parser.add_argument("--pyhmmer", help="Python interpreter that has PyHMMER")
    parser.add_argument("--cases", nargs="*", default=["*"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    shared = scenario.shared_folder()
    data = args.data or ("recorded" if shared else "debian" if os.path.exists(DATABASE) else "emitted")
    if data == "recorded" and not shared:
        sys.exit("the recorded data is not here; $HMMJIT_SHARED says where it is")
    results, passed = [], True
    with tempfile.TemporaryDirectory(prefix="hmmjit-benchmark-") as work:
        cases = {"recorded": lambda: recorded_cases(shared + "/data", work),
                 "debian": lambda: debian_cases(work), "emitted": lambda: emitted_cases(work)}[data]()
        print(f"{'case':22} {'threads':>7} {'hmmsearch':>21} {'hmmjit':>21} {'ratio':>13} "
              f"{'peak MB':>15}")
        print(f"{'':22} {'':>7} {'core-s':>10} {'wall s':>10} {'core-s':>10} {'wall s':>10} "
              f"{'core':>6} {'wall':>6} {'hmmsearch':>9} {'hmmjit':>5}")
        for name, model, targets in cases:
            if not any(fnmatch.fnmatch(name, pattern) for pattern in args.cases):
                continue
            for threads in sorted({*args.threads} | ({BOUNDED[1]} if name == BOUNDED[0] else set())):
                workers = "0" if threads == 1 else str(threads)
                tables = [work + "/want", work + "/got"]
                theirs = best(["hmmsearch", "--noali", "--cpu", workers, "-o", "/dev/null",
                               "--domtblout", tables[0], model, targets], args.repeats)
                ours = best([args.program, "search", "--quiet", "--noali", "--device", args.device,
                             "--cpu", str(threads), "--stats", work + "/stats.json",
                             "-o", "/dev/null", "--domtblout", tables[1], model, targets],
                            args.repeats)
                print(f"{name:22} {threads:7} {theirs['cpu']:10.2f} {theirs['wall']:10.2f} "
                      f"{ours['cpu']:10.2f} {ours['wall']:10.2f} "
                      f"{theirs['cpu'] / ours['cpu']:6.2f} {theirs['wall'] / ours['wall']:6.2f} "
                      f"{theirs['peak']:9.0f} {ours['peak']:6.0f}")
                print(describe_stages(work + "/stats.json"), flush=True)
                if (name, threads) == BOUNDED[:2]:
                    within = ours["peak"] < BOUNDED[2]
                    passed &= within
                    print(f"    peak {ours['peak']:.0f} MB at {threads} threads: "
                          f"{'under' if within else 'NOT under'} {BOUNDED[2]} MB", flush=True)
                if args.check:
                    verdict = compared(*map(rows, tables))
                    passed &= verdict != "DIFFER"
                    print(f"{'':22} hits {verdict}", flush=True)
                with open(work + "/stats.json") as file:
                    results.append({"case": name, "threads": threads, "hmmsearch": theirs,
                                    "hmmjit": ours, "stats": json.load(file)})
                if args.pyhmmer:
                    third = best([args.pyhmmer, "-c", PYHMMER, model, targets, work + "/third",
                                  str(threads)], args.repeats)
                    results[-1]["pyhmmer"] = third
                    found = len(rows(work + "/third")), len(rows(tables[0]))
                    print(f"    PyHMMER: {third['cpu']:.2f} core-s, {third['wall']:.2f} wall s, "
                          f"{third['peak']:.0f} MB peak; {found[0]} domains (hmmsearch: {found[1]}); "
                          f"ratio to hmmjit {third['cpu'] / ours['cpu']:.2f} core, "
                          f"{third['wall'] / ours['wall']:.2f} wall", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
