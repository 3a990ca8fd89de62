#!/usr/bin/env python3
"""Core-seconds, wall time and peak memory of hmmjit phmmer, jackhmmer, scan, build and align, and of phmmer, jackhmmer,
hmmscan, hmmbuild and hmmalign, on this machine.

usage: compare_programs.py [--program PATH] [--threads N] [--targets FASTA] [--models HMM] [--device cpu|gpu|auto]
                           [--cases GLOB ...] [--repeats N] [--queries N] [--json FILE]

The queries are proteins of the targets of about 100 to 1,500 residues, evenly spread. The cases:
  phmmer           all queries against the targets
  jackhmmer -N 1   the same, one round; -N 3: three rounds
  structure        what structure prediction asks for: the longest query, -N 1 with its narrow filters
  hmmscan          1,000 of the targets against the models, for hmmscan pressed files
  hmmbuild small   an alignment for each model, of 30 sequences that hmmemit makes
  hmmbuild deep    one alignment of 5,000 sequences of the model nearest to 250 positions
  hmmalign         the same sequences to that model
--device gpu|auto: hmmjit searches a database that `hmmjit db build` has made; otherwise both read the FASTA file.
Targets and models are the project's collection ($HMMJIT_SHARED, all proteomes together, 31 M residues, and the Pfam mix)
where that is there, else Debian's mmseqs2-examples and hmmer-examples.
Each line is the best of --repeats runs, the whole process with start-up and output counted; its last column says whether
both found the same: the lines of the tables or alignments, or the models but for their DATE and COM lines.
"""
import argparse
import fnmatch
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_hmmsearch as common  # noqa: E402
from compare_hmmsearch import scenario  # noqa: E402

STRUCTURE = ["-N", "1", "--F1", "0.0005", "--F2", "0.00005", "--F3", "0.0000005", "--incE", "0.0001", "-E", "0.0001"]


def residues_of(record):
    return record[2]


def write_fasta(path, records):
    scenario.write_fasta(path, records)
    return path


def chosen_queries(records, count):
    """Proteins next to evenly spread lengths, each once."""
    left, out = [r for r in records if set(residues_of(r)) <= set("ACDEFGHIKLMNPQRSTVWY")], []
    for i in range(count):
        wanted = 100 + 1400 * i // max(1, count - 1)
        out.append(min(left, key=lambda r: abs(len(residues_of(r)) - wanted)))
        left = [r for r in left if r[0] != out[-1][0]]
    return out


def default_inputs(work):
    shared = scenario.shared_folder()
    if shared:
        cases = common.recorded_cases(shared + "/data", work)
    else:
        cases = common.debian_cases(work)
    return cases[-1][1], cases[-1][2]


def lengths_of(models):
    """Name and length of each model."""
    out, name = [], None
    with open(models) as file:
        for line in file:
            if line.startswith("NAME"):
                name = line.split()[1]
            elif line.startswith("LENG"):
                out.append((name, int(line.split()[1])))
    return out


def small_alignments(models, work):
    """30 sequences of every model."""
    path = work + "/small.sto"
    made = scenario.run(["hmmemit", "-a", "-N", "30", "--seed", "7", models]).stdout.decode()
    first = "# STOCKHOLM 1.0\n"
    with open(path, "w") as file:
        for (name, _), text in zip(lengths_of(models), made.split(first)[1:]):
            file.write(f"{first}#=GF ID {name}\n{text}")
    return path


def deep_alignment(models, work):
    """One of the models, and an alignment of 5,000 sequences of it."""
    path = work + "/deep.sto"
    name = min(lengths_of(models), key=lambda m: abs(m[1] - 250))[0]
    one = work + "/one.hmm"
    with open(one, "wb") as file:
        file.write(scenario.run(["hmmfetch", models, name]).stdout)
    with open(path, "wb") as file:
        file.write(scenario.run(["hmmemit", "-a", "-N", "5000", "--seed", "7", one]).stdout)
    return one, path


def model_lines(path):
    with open(path, errors="replace") as file:
        return [hash(line) for line in file if not line.startswith(("DATE", "COM", "HMMER3"))]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    parser.add_argument("--program", default=os.path.join(common.SOURCE, "build/release/bin/hmmjit"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--targets")
    parser.add_argument("--models")
    parser.add_argument("--device", choices=("cpu", "gpu", "auto"), default="cpu")
    parser.add_argument("--cases", nargs="*", default=["*"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--json")
    args = parser.parse_args()
    workers = "0" if args.threads == 1 else str(args.threads)
    results, same = [], True
    with tempfile.TemporaryDirectory(prefix="hmmjit-benchmark-") as work:
        models, targets = args.models, args.targets
        if models is None or targets is None:
            found = default_inputs(work)
            models, targets = models or found[0], targets or found[1]
        with open(targets) as file:
            sequences = scenario.fasta_records(file.read())
        some = chosen_queries(sequences, args.queries)
        queries = write_fasta(work + "/queries.fasta", some)
        longest = write_fasta(work + "/longest.fasta", [max(some, key=lambda r: len(residues_of(r)))])
        proteins = write_fasta(work + "/proteins.fasta", sequences[::max(1, len(sequences) // 1000)][:1000])
        residues = sum(len(residues_of(r)) for r in sequences)
        print(f"{len(some)} queries of {', '.join(str(len(residues_of(r))) for r in some)} residues; {len(sequences)} targets, "
              f"{residues} residues; {len(lengths_of(models))} models; {args.threads} threads; device {args.device}")
        del sequences
        searched = targets
        if args.device != "cpu":
            searched = work + "/targets.hmmdb"
            scenario.run([args.program, "db", "build", searched, targets])
        theirs_cpu, ours_cpu = ["--cpu", workers], ["--cpu", str(args.threads)]
        device = ["--quiet", "--device", args.device, *ours_cpu]

        def command(words, table, query, database):
            return [*words, "--noali", "-o", "/dev/null", "--domtblout", table, query, database]

        def search(name, query, *options):
            return (command([name, *theirs_cpu, *options], work + "/want", query, targets),
                    command([args.program, name, *device, *options], work + "/got", query, searched), common.rows)

        def scan():
            pressed = work + "/pressed.hmm"
            shutil.copyfile(models, pressed)
            scenario.run(["hmmpress", pressed])
            return (command(["hmmscan", *theirs_cpu], work + "/want", pressed, proteins),
                    command([args.program, "scan", "--quiet", *ours_cpu], work + "/got", pressed, proteins),
                    common.rows)

        def build(alignment):
            return ["hmmbuild", *theirs_cpu, "-o", "/dev/null", work + "/want", alignment], \
                [args.program, "build", *ours_cpu, "-o", "/dev/null", work + "/got",
                 alignment], model_lines

        def align(model, sequences):
            return ["hmmalign", "-o", work + "/want", model, sequences], \
                [args.program, "align", *ours_cpu, "-o", work + "/got", model, sequences], model_lines

        cases = {"phmmer": lambda: search("phmmer", queries),
                 "jackhmmer -N 1": lambda: search("jackhmmer", queries, "-N", "1"),
                 "jackhmmer -N 3": lambda: search("jackhmmer", queries, "-N", "3"),
                 "structure": lambda: search("jackhmmer", longest, *STRUCTURE),
                 "hmmscan": scan,
                 "hmmbuild small": lambda: build(small_alignments(models, work)),
                 "hmmbuild deep": lambda: build(deep_alignment(models, work)[1]),
                 "hmmalign": lambda: align(*deep_alignment(models, work))}
        print(f"{'case':15} {'HMMER':>24} {'hmmjit':>24} {'ratio':>13} {'same?':>6}")
        print(f"{'':15} {'core-s':>8} {'wall s':>8} {'MB':>6} {'core-s':>8} {'wall s':>8} {'MB':>6} {'core':>6} {'wall':>6}")
        for name, make in cases.items():
            if not any(fnmatch.fnmatch(name, pattern) for pattern in args.cases):
                continue
            theirs, ours, lines = make()
            want, got = common.best(theirs, args.repeats), common.best(ours, args.repeats)
            equal = common.compared(lines(work + "/want"), lines(work + "/got"))
            same &= equal != "DIFFER"
            print(f"{name:15} {want['cpu']:8.2f} {want['wall']:8.2f} {want['peak']:6.0f} {got['cpu']:8.2f} "
                  f"{got['wall']:8.2f} {got['peak']:6.0f} {want['cpu'] / got['cpu']:6.2f} "
                  f"{want['wall'] / got['wall']:6.2f} {equal}", flush=True)
            results.append({"case": name, "HMMER": want, "hmmjit": got, "same": equal})
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
