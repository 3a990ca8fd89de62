#!/usr/bin/env python3
"""Random searches on a GPU, each compared with the same search on the CPU, until a time is up.

usage: random_searches.py HMMJIT --models FILE ... --targets FILE ... [options]

--programs chooses among search, phmmer, jackhmmer, scan, nhmmer (models and targets of DNA among the files), server
(one to four clients of `hmmjit serve` at a time) and session (searches of a Session in Python, in turn and two at a
time; --package). Queries of phmmer and jackhmmer are sequences that the models emit.

A search is a random library (1 to 400 of the models, models cut and joined to lengths at the edges
of size classes among them, in any order), random targets (drawn from the files, cut, joined to
50,000 residues, degenerate, twice the same, emitted by the models; one to 100,000), random options,
thread counts, bounds on memory, and kernel caches (empty, warm, a random half of the warm one, and
that half where nothing may be compiled). All of it follows from the search's seed: --only SEED
repeats that search. The report, the tables, the exact values of --tsv and all counters must be the
CPU's, byte for byte; a share of the CPU's results is compared with hmmsearch's. A difference is
reduced to few models and targets, which are kept in --keep.

Needs nothing but Python 3.11. Exit status: 0 all equal; 1 a difference or a failed run; 77 no GPU.
"""
import argparse
import bz2
import collections
import concurrent.futures
import gzip
import hashlib
import json
import math
import multiprocessing
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import typing

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
MOST_RESIDUES = 31_000_000
# Lengths at which kernels of some stage change, from 32 to what the longest models have.
EDGES = (32, 48, 64, 96, 128, 192, 256, 384, 512, 704, 768, 896, 904, 1024, 1152, 1280, 1408, 1440, 1536,
         1600, 2048, 2400, 2560, 2624, 3072, 3584, 3840, 4800)
THREADS = (1, 1, 1, 2, 2, 3, 4, 6, 8, 12, 16)
LIBRARIES = {"uniform": 4, "edges": 3, "class_1536": 3, "one_class": 2, "long": 3, "short": 1, "repeats": 2,
             "any_length": 2}


class Program(typing.NamedTuple):
    share: float  # of a campaign's searches
    most: int = 400  # models or queries
    queries: bool = False  # sequences, not models
    refused: tuple = ()  # options that it does not take
    table: str = "--domtblout"


PROGRAMS = {
    "search": Program(8), "scan": Program(4), "phmmer": Program(3, 12, queries=True),
    "jackhmmer": Program(2, 3, queries=True), "server": Program(3), "session": Program(3),
    "nhmmer": Program(4, 60, refused=("--vram", "--verify", "--domE", "--domT", "--domZ", "--incdomE", "--incdomT"),
                      table="--dfamtblout")}
SERVED = ("search", "scan", "phmmer", "jackhmmer")
# Arguments: package, library, device, threads, base of outputs, models, targets, options (JSON), sizes (JSON).
SESSION = """
import concurrent.futures, json, os, sys
package, os.environ["HMMJIT_LIBRARY"], device, threads, base, models, targets, options, sizes = sys.argv[1:]
sys.path.insert(0, package)
import hmmjit
options, report = json.loads(options)
session = hmmjit.Session(targets, device=device, threads=int(threads), **json.loads(sizes))
def search(number):
    found = session.search(models, **options)
    for kind, name in (("main", "out"), ("tblout", "tbl"), ("domtblout", "dom"), ("tsv", "tsv")):
        found.report(kind, f"{base}{number}.{name}", **report)
    with open(f"{base}{number}.json", "w") as file:
        file.write(found.statistics["json"])
search(0)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(search, (1, 2)))
"""
CACHE_STATES = ("warm", "half", "half, strict", "empty")
# What the targets that pass a filter cost, in seconds a cell and core, beside an ordinary search.
CELL_SECONDS, VITERBI_SECONDS, FORWARD_SECONDS, DOMAIN_SECONDS = 1 / 26e9, 1 / 3e9, 1 / 0.6e9, 1 / 30e6


# ---- models and targets ----------------------------------------------------------------------------

def read(path):
    opener = gzip.open if path.endswith(".gz") else bz2.open if path.endswith(".bz2") else open
    with opener(path, "rb") as source:
        return source.read()


def read_all(paths):
    """Contents in the order of the paths; decompressed side by side."""
    if not paths:
        return []
    with multiprocessing.get_context("fork").Pool(min(len(paths), len(os.sched_getaffinity(0)))) as pool:
        return pool.map(read, paths, chunksize=1)


class Model:
    """One profile as the text of its file; parts of it are read when something asks for them."""

    def __init__(self, text):
        if not text.endswith(b"\n"):
            text += b"\n"
        if text.count(b"HMMER3/", 0, 200) > 1:  # a header line twice
            text = text[text.index(b"\n") + 1:]
        self.text = text
        head = text[:text.index(b"\nHMM")].split(b"\n")
        self.version = head[0].split()[0]
        fields = {line[:5].strip(): line[5:].strip() for line in head[1:]}
        self.name, self.M = fields[b"NAME"].decode(), int(fields[b"LENG"])
        self.letters = {b"amino": RESIDUES, b"dna": "ACGT"}.get(fields[b"ALPH"].lower(), "")
        self.cutoffs = {tag for tag in (b"GA", b"NC", b"TC") if tag in fields}
        self.nodes = None

    def split(self):
        """Header with COMPO and node 0, and the lines of the nodes 1 to M, three each."""
        if self.nodes is None:
            lines = self.text.split(b"\n")
            begin = next(i for i, line in enumerate(lines) if line.split()[:1] == [b"HMM"])
            first = next(i for i, line in enumerate(lines) if i > begin and line.split()[:1] == [b"1"])
            end = first + 3 * self.M
            self.header, self.nodes = lines[:first], lines[first:end]
        return self.header, self.nodes

    def emissions(self):
        """For each node the cumulated weights of the residues in the order of `letters`."""
        _, nodes = self.split()
        out = []
        for line in nodes[::3]:
            total, sums = 0.0, []
            for field in line.split()[1:1 + len(self.letters)]:
                total += 0.0 if field == b"*" else math.exp(-float(field))
                sums.append(total)
            out.append(sums)
        return out

    def emitted(self, rng, copies):
        """Rows of residues, one for each node."""
        return [rng.choices(self.letters, cum_weights=sums, k=copies) if sums[-1] > 0 else ["A"] * copies
                for sums in self.emissions()]

    def query(self):
        """A sequence that depends on the model alone."""
        residues = "".join(c for c, in self.emitted(random.Random(f"{self.name} {self.M}"), 1))
        return b">%s\n%s\n" % (self.name.encode(), residues.encode())


def with_nodes(model, nodes, name):
    """A model with the header of another; its last node has the transitions of a last node."""
    header, own = model.split()
    M = len(nodes) // 3
    head = [b"NAME  " + name.encode() if line.startswith(b"NAME ") else
            b"LENG  %d" % M if line.startswith(b"LENG ") else line for line in header]
    body = list(nodes)
    for i in range(0, len(body), 3):
        body[i] = b"%7d" % (i // 3 + 1) + b" " + body[i].lstrip().split(b" ", 1)[1]
    body[-1] = own[-1]
    return Model(b"\n".join(head + body + [b"//", b""]))


def of_length(rng, models, M):
    """A model of exactly that length: part of a longer one, or several behind one another."""
    longer = [m for m in models if m.M > M]
    if longer:
        model = rng.choice(longer)
        first = rng.randrange(model.M - M + 1)
        _, nodes = model.split()
        return with_nodes(model, nodes[3 * first:3 * (first + M)], f"{model.name}_{first}_{M}")
    model, nodes = rng.choice(models), []
    while len(nodes) < 3 * M:
        other = rng.choice(models)
        part = list(other.split()[1])
        if other.M > 1:
            part[-1] = part[-4]  # goes on instead of ending
        nodes += part
    return with_nodes(model, nodes[:3 * M], f"{model.name}_joined_{M}")


class Pool:
    def __init__(self, model_files, target_files):
        groups, dna = collections.defaultdict(list), collections.defaultdict(list)
        contents = read_all(model_files + target_files)
        for content in contents[:len(model_files)]:
            for text in (content.rstrip() + b"\n").split(b"//\n"):
                if text.strip():
                    model = Model(text.lstrip() + b"//\n")
                    if model.letters:
                        (groups if model.letters == RESIDUES else dna)[model.version].append(model)
        self.groups = [groups[version] for version in sorted(groups)]
        self.dna_groups = [dna[version] for version in sorted(dna)]
        self.targets, self.dna = [], []  # (header without '>', residues)
        for content in contents[len(model_files):]:
            for record in content.split(b"\n>"):
                header, _, residues = record.lstrip(b">").partition(b"\n")
                residues = residues.replace(b"\n", b"").replace(b" ", b"")
                if header:
                    nucleotides = not residues[:500].upper().translate(None, b"ACGTN")
                    (self.dna if nucleotides and len(residues) > 100 else self.targets).append((header, residues))
        if not self.groups or not self.targets:
            sys.exit("random_searches.py: no protein models, or no targets")

    def counts(self):
        return sum(len(g) for g in self.groups), len(self.targets), sum(len(t[1]) for t in self.targets)


# ---- what a seed stands for ------------------------------------------------------------------------

def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def weighted(rng, **weights):
    return rng.choices(list(weights), list(weights.values()))[0].replace("__", ", ")


class Case:
    """The inputs and options of one search, and the runs on the device."""

    def __init__(self, seed, pool, settings):
        self.seed, rng = seed, random.Random(seed)
        name = rng.choices(settings.programs, [PROGRAMS[p].share for p in settings.programs])[0]
        self.program, self.command = name, {"server": rng.choice(SERVED), "session": "search"}.get(name, name)
        self.traits, self.clients = PROGRAMS[self.command], rng.randint(1, 4)
        # Few threads more often: a device has the larger share of the work beside them.
        self.threads = rng.choice(THREADS)
        self.choose_options(rng)
        self.core_seconds = min(settings.core_seconds, log_uniform(rng, 0.4, 4) * self.threads)
        if self.command == "nhmmer":
            self.core_seconds = settings.core_seconds * rng.uniform(0.3, 1)
        elif self.command == "jackhmmer" or self.program in ("server", "session"):
            self.core_seconds /= 3  # several rounds or searches
        self.cells = self.core_seconds / self.seconds_per_cell()
        groups = pool.dna_groups if self.command == "nhmmer" else pool.groups
        self.choose_models(rng, rng.choices(groups, [len(g) for g in groups])[0], settings)
        (self.choose_nucleotides if self.command == "nhmmer" else self.choose_targets)(rng, pool)
        if not self.traits.queries and self.program != "session":
            self.choose_cutoffs(rng)
        self.report_threads = rng.choice((1, 2, 4, 8, 16))
        self.database = rng.random() < 0.15 and self.command not in ("scan", "nhmmer")
        self.ask_oracle = rng.random() < settings.oracle_share and self.command == "search"
        self.runs = [self.choose_run(rng, settings) for _ in range(1 + (rng.random() < 0.5) + (rng.random() < 0.2))]

    # The fractions of targets that the filters let through decide what a search costs.
    def seconds_per_cell(self):
        if "--max" in self.options:
            return DOMAIN_SECONDS
        f1, f2, f3 = (float(self.options[self.options.index(f) + 1]) if f in self.options else usual
                      for f, usual in (("--F1", 0.02), ("--F2", 1e-3), ("--F3", 1e-5)))
        f2, f3 = min(f1, f2), min(f1, f2, f3)
        return CELL_SECONDS + f1 * VITERBI_SECONDS + f2 * FORWARD_SECONDS + f3 * DOMAIN_SECONDS

    def choose_options(self, rng):
        out = self.options = []

        def some(p, *arguments):
            if rng.random() < p:
                out.extend(str(a) for a in arguments)

        def number(value):
            return f"{value:.4g}"

        self.filters = weighted(rng, default=10, random=5, loose=3, open=1, max=0.5)
        if self.filters == "max":
            out.append("--max")
        elif self.filters == "open":  # as --max, but the filters run
            out += ["--F1", "0.999999", "--F2", "0.999999", "--F3", number(log_uniform(rng, 0.01, 1))]
        elif self.filters == "loose":
            out += ["--F1", number(log_uniform(rng, 0.02, 0.6)), "--F2", number(log_uniform(rng, 1e-3, 0.2)),
                    "--F3", number(log_uniform(rng, 1e-5, 0.02))]
        elif self.filters == "random":
            some(0.6, "--F1", number(log_uniform(rng, 1e-5, 0.5)))
            some(0.6, "--F2", number(log_uniform(rng, 1e-7, 0.1)))
            some(0.6, "--F3", number(log_uniform(rng, 1e-9, 1e-2)))
        if self.filters != "max":  # which excludes it
            some(0.15, "--nobias")
        some(0.15, "--nonull2")
        some(0.2, "-Z", number(log_uniform(rng, 0.5, 1e9)))
        some(0.15, "--domZ", number(log_uniform(rng, 0.5, 1e6)))
        some(0.25, "--seed", rng.randrange(1, 2**31))
        for tag, p in (("", 0.4), ("dom", 0.3), ("inc", 0.25), ("incdom", 0.25)):
            dash = "--" if tag else "-"
            if rng.random() < p:
                if rng.random() < 0.6:
                    out += [f"{dash}{tag}E", number(log_uniform(rng, 1e-30, 1e5))]
                else:
                    out += [f"{dash}{tag}T", number(rng.uniform(-20, 150))]
        some(0.3, "--noali")
        some(0.1, "--notextw")
        some(0.1, "--acc")
        for name in self.traits.refused:
            if name in out:
                del out[out.index(name):out.index(name) + 2]
        if self.command == "jackhmmer":
            out += ["-N", str(rng.choice((2, 2, 3)))]

    def choose_models(self, rng, group, settings):
        weights = {k: w for k, w in LIBRARIES.items() if k in settings.libraries}
        kind = self.library = weighted(rng, **weights)
        count = round(log_uniform(rng, 1, self.traits.most + 0.5))
        made = min(count, round(log_uniform(rng, 1, 60)))  # of lengths of our own: they take time to make
        near = lambda low, high: [m for m in group if low <= m.M <= high] or group
        if kind == "uniform":
            models = rng.choices(group, k=count) if rng.random() < 0.1 else rng.sample(group, min(count, len(group)))
        elif kind == "edges":
            models = [of_length(rng, group, max(1, rng.choice(EDGES) + rng.randint(-2, 2))) for _ in range(made)]
            models += rng.sample(group, min(count - made, len(group)))
        elif kind == "class_1536":
            there = near(1025, 1536)
            models = [of_length(rng, group, rng.randint(1025, 1536)) for _ in range(made)]
            models += rng.sample(there, min(count - made, len(there)))
            models += rng.sample(group, min(rng.randrange(count), len(group)))
        elif kind == "one_class":
            low, high = rng.choice(((1, 64), (65, 128), (129, 256), (257, 512), (513, 1024), (1025, 1536),
                                    (1537, 2048), (2049, 2560), (2561, 3600)))
            models = [of_length(rng, group, rng.randint(low, high)) for _ in range(made)]
            there = near(low, high)
            models += rng.sample(there, min(count - made, len(there)))
        elif kind == "long":
            models = [of_length(rng, group, rng.randint(1400, 3600)) for _ in range(min(made, 20))]
            models += rng.sample(near(1024, 5000), min(count // 4, len(near(1024, 5000))))
        elif kind == "short":
            models = [of_length(rng, group, round(log_uniform(rng, 1, 64))) for _ in range(made)]
            models += rng.choices(near(1, 64), k=count - made)
        elif kind == "repeats":
            models = rng.choices(rng.sample(group, min(len(group), rng.randint(1, 6))), k=count)
        else:
            models = [of_length(rng, group, round(log_uniform(rng, 1, 3600))) for _ in range(made)]
        if rng.random() < 0.7:
            rng.shuffle(models)
        else:
            models.sort(key=lambda m: m.M, reverse=rng.random() < 0.5)
        models = models[:self.traits.most]
        # Not so many that few targets are left.
        while len(models) > 1 and self.cells / sum(m.M for m in models) < 3000:
            models.pop(rng.randrange(len(models)))
        self.models = models

    def choose_targets(self, rng, pool):
        most = min(MOST_RESIDUES, max(60, self.cells / sum(m.M for m in self.models)))
        kind = self.kind = weighted(rng, mixed=5, run=3, short=1.5, long=1.5, degenerate=1, twice=1, one=0.5)
        draw = lambda: rng.choice(pool.targets)
        out, total = [], 0
        if kind == "one":
            header, residues = draw()
            out = [(header, residues[:int(most)] or b"A")]
        elif kind == "run":
            first = rng.randrange(len(pool.targets))
            while total < most:
                record = pool.targets[(first + len(out)) % len(pool.targets)]
                out.append(record)
                total += len(record[1])
        elif kind == "short":
            longest = rng.choice((20, 60, 200))
            while total < min(most, 4_000_000) and len(out) < 100_000:
                header, residues = draw()
                first = rng.randrange(max(1, len(residues)))
                part = residues[first:first + rng.randint(1, longest)]
                if part:
                    out.append((header, part))
                    total += len(part)
        elif kind == "long":
            # A joined target passes the filters if one of its proteins does: with many models most do.
            most = min(most, self.core_seconds / FORWARD_SECONDS / sum(m.M for m in self.models))
            while total < most:
                wanted = min(most, log_uniform(rng, 3000, 50_000) if rng.random() < 0.7 else 300)
                parts, length = [], 0
                while length < wanted:
                    parts.append(draw()[1])
                    length += len(parts[-1])
                out.append((b"joined%d %d residues" % (len(out), length), b"".join(parts)[:50_000]))
                total += len(out[-1][1])
        else:
            while total < most:
                record = draw()
                out.append(record)
                total += len(record[1])
            out = out[:100_000]
            if kind == "degenerate":
                for i in range(0, len(out), rng.randint(1, 5)):
                    out[i] = (out[i][0] + b" degenerate", self.degenerate(rng, out[i][1][:5000]))
            elif kind == "twice":
                half = out[:max(1, len(out) // 2)]
                out = half + [rng.choice(half) for _ in half]
                if rng.random() < 0.5:  # one name for all
                    out = [(b"same", residues) for _, residues in out]
        out += self.emitted(rng, pool, most)
        if kind != "run":
            rng.shuffle(out)
        self.targets = out

    def choose_nucleotides(self, rng, pool):
        """Windows of genomes, of both strands, rich in copies of some models."""
        most = min(MOST_RESIDUES, max(1000, self.cells / 2 / sum(m.M for m in self.models)))
        copies = [text for _, text in self.emitted(rng, pool, most)]
        room = 0.2 * self.core_seconds / DOMAIN_SECONDS / max(m.M for m in self.models)  # residues of copies
        self.kind, self.targets, total = weighted(rng, genome=3, degenerate=1, pieces=1), [], 0
        while total < most:
            header, residues = rng.choice(pool.dna)
            length = round(log_uniform(rng, 50, 5000) if self.kind == "pieces" else log_uniform(rng, 1000, 5_000_000))
            first = rng.randrange(max(1, len(residues) - length))
            window = bytearray(residues[first:first + round(min(length, most - total + 50))])
            for _ in range(rng.randrange(40) if copies else 0):
                at, copy = rng.randrange(len(window) + 1), rng.choice(copies)
                room -= len(copy)
                window[at:at] = copy if room > 0 else b""
            if self.kind == "degenerate":
                for _ in range(1 + len(window) // 1000):
                    at = rng.randrange(len(window))
                    window[at:at + 1] = rng.choice((b"N", b"RYMK", b"N" * 60, b"acgt", b"AC" * 40))
            if rng.random() < 0.5:
                window = window.translate(bytes.maketrans(b"ACGTacgt", b"TGCAtgca"))[::-1]
            self.targets.append((b"w%d_%s" % (len(self.targets), header), bytes(window)))
            total += len(window)

    @staticmethod
    def degenerate(rng, residues):
        kind = rng.randrange(4)
        if kind == 0:
            return rng.choice((b"X", b"A", b"*", b"Q", b"BZ", b"QN")) * max(1, len(residues) // 2)
        letters, out = b"BZXJOU*", bytearray(residues or b"X")
        for _ in range(1 + len(out) // rng.randint(2, 30)):
            out[rng.randrange(len(out))] = rng.choice(letters)
        return bytes(out).lower() if kind == 1 else bytes(out)

    def emitted(self, rng, pool, most):
        """Targets that some of the models like, more or less; they cost most in the domain stage."""
        out, most = [], min(most, 100_000)
        cells = 0.3 * self.core_seconds / DOMAIN_SECONDS
        for model in rng.sample(self.models, min(len(self.models), rng.randint(0, 5))):
            copies = round(log_uniform(rng, 1, max(1.01, min(40, most / 5 / model.M))))
            rows = model.emitted(rng, copies)
            for c in range(copies):
                fade = rng.choice((0, 0, 0.2, 0.4, 0.6, 0.8))
                text = "".join(rng.choice(model.letters) if fade and rng.random() < fade else row[c] for row in rows)
                if rng.random() < 0.5:
                    first = rng.randrange(len(text))
                    text = text[first:first + rng.randint(1, len(text))]
                text = text * rng.choice((1, 1, 1, 1, 2, 3, 20))
                flank = b"" if self.command == "nhmmer" else rng.choice(pool.targets)[1][:rng.randrange(200)]
                cells -= len(text) * model.M
                if out and cells < 0:
                    return out
                out.append((f"emitted{c}_{model.name}".encode(), flank + text.encode() + flank[::-1]))
        return out

    def choose_cutoffs(self, rng):
        there = set.intersection(*(m.cutoffs for m in self.models))
        if there and rng.random() < 0.4:
            kept, skip = [], False
            for argument in self.options:  # thresholds and cut-offs do not go together
                if skip or argument.lstrip("-") in ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT"):
                    skip = not skip
                    continue
                kept.append(argument)
            self.options = kept + ["--cut_" + rng.choice(sorted(there)).decode().lower()]

    def choose_run(self, rng, settings):
        run = {"device": rng.choice(settings.device_texts), "threads": self.threads if rng.random() < 0.5 else
               rng.choice(THREADS),
               "cache": rng.choices(CACHE_STATES, (9, 5, 3, 3))[0], "arguments": []}
        if rng.random() < 0.25:
            run["arguments"] += ["--vram", f"{round(log_uniform(rng, 8, 2000))}M"]
        if rng.random() < 0.25:
            run["arguments"] += ["--mem", f"{round(log_uniform(rng, 300 if self.kind == 'long' else 4, 1000))}M"]
        if rng.random() < 0.1:
            run["arguments"] += ["--verify", str(rng.choice((1, 20, 200)))]
        if self.command == "nhmmer":  # one device, and few threads: it is ready after a second
            run.update(device=rng.choice(settings.device_texts).split(",")[0], threads=rng.choice((1, 1, 2)), arguments=[])
        return run

    def describe(self):
        lengths = [m.M for m in self.models]
        return {"seed": self.seed, "program": self.program, "command": self.command, "library": self.library, "models": len(lengths), "shortest": min(lengths),
                "longest": max(lengths), "kind": self.kind, "targets": len(self.targets),
                "residues": sum(len(t[1]) for t in self.targets), "filters": self.filters,
                "options": " ".join(self.options), "database": self.database}


# ---- runs and comparison ---------------------------------------------------------------------------

class Failure(Exception):
    pass


def result_lines(path):
    with open(path, "rb") as file:
        lines = [line for line in file.read().split(b"\n") if not line.startswith((b"#", b"[ok]"))]
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def first_difference(want, got):
    for number, (a, b) in enumerate(zip(want, got)):
        if a != b:
            return f"line {number}: CPU {a.decode(errors='replace')!r}, device {b.decode(errors='replace')!r}"
    return f"CPU {len(want)} lines, device {len(got)}"


PASSED = {b"Passed MSV filter:": "msv", b"Passed bias filter:": "bias", b"Passed Vit filter:": "viterbi",
          b"Passed Fwd filter:": "forward"}
PASSED |= {b"Residues passing" + key[6:].replace(b"MSV", b"SSV"): name for key, name in PASSED.items()}


class Results:
    """What must be equal: the lines of the files and the counters."""
    NAMES = ("out", "tbl", "dom", "tsv")

    def __init__(self, base, statistics=True):
        self.lines = {n: result_lines(f"{base}.{n}") for n in (self.NAMES if statistics else self.NAMES[:3])}
        self.counters, self.statistics = {}, {}
        if statistics:
            with open(base + ".json") as file:
                self.statistics = json.load(file)
            s = self.statistics
            self.counters = {k: s[k] for k in ("models", "targets", "residues", "passed", "targets_reported",
                                               "domains_reported")}
            sums = dict.fromkeys(PASSED.values(), 0)
            for line in self.lines["out"]:
                key = PASSED.get(line[:line.find(b":") + 1])
                if key:
                    sums[key] += int(line.split(b":")[1].split()[0])
            if sums != s["passed"]:
                raise Failure(f"the report's counters {sums} are not those of --stats {s['passed']}")

    def difference(self, other):
        """Empty, or what differs first of each."""
        out = [f"{name}: {first_difference(lines, other.lines[name])}" for name, lines in self.lines.items()
               if name in other.lines and lines != other.lines[name]]
        if self.counters and other.counters and self.counters != other.counters:
            out.append(f"counters: CPU {self.counters}, device {other.counters}")
        return "; ".join(out)

    def sections(self):
        """The report's text of each model."""
        out, text = [], []
        for line in self.lines["out"]:
            text.append(line)
            if line == b"//":
                out.append(text)
                text = []
        return out


class Runner:
    """Runs searches in a folder of its own."""

    def __init__(self, settings, folder):
        self.settings, self.folder = settings, folder
        os.makedirs(folder, exist_ok=True)

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, case, models, targets):
        """The files of a search; the targets' path."""
        with open(self.at("models.hmm"), "wb") as out:
            out.writelines(m.query() if case.traits.queries else m.text for m in models)
        with open(self.at("targets.fasta"), "wb") as out:
            out.writelines(b">%s\n%s\n" % record for record in targets)
        if case.database:
            self.execute([self.settings.program, "db", "build", "-o", self.at("targets.hjdb"),
                          self.at("targets.fasta")])
            return self.at("targets.hjdb")
        return self.at("targets.fasta")

    def execute(self, command, environment=None):
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        try:
            _, errors = process.communicate(timeout=self.settings.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"no end after {self.settings.timeout} s: {' '.join(command)}") from None
        text = errors.decode(errors="replace").strip()
        if process.returncode != 0:
            raise Failure(f"exit {process.returncode}: {' '.join(command)}: {text[-1000:]}")
        return time.monotonic() - begun, text

    def command(self, program, name, options, inputs, table="--domtblout"):
        base = self.at(name)
        return [*program, *options, "-o", base + ".out", "--tblout", base + ".tbl", table, base + ".dom", *inputs]

    def exact(self, program, command, name):
        return [program, command, "--quiet", "--stats", self.at(f"{name}.json"), "--tsv", self.at(f"{name}.tsv")]

    def cpu(self, case, targets, threads):
        command = self.command([*self.exact(self.settings.program, case.command, "cpu"), "--device", "cpu", "--cpu",
                                str(threads)], "cpu", case.options, [self.at("models.hmm"), targets], case.traits.table)
        seconds, _ = self.execute(command)
        return Results(self.at("cpu")), seconds

    def device(self, case, targets, run, folder, program=None):
        """Results of a search, of each client of a server, or of each search of a session."""
        program = program or self.settings.device_program
        environment = dict(os.environ, HMMJIT_CACHE_DIR=folder)
        if run["cache"] == "half, strict":
            environment["HMMJIT_CACHE_MODE"] = "strict"
        if case.program == "server":
            return self.served(program, case, targets, run, environment)
        if case.program == "session":
            return self.of_session(case, targets, run, environment)
        command = self.command([*self.exact(program, case.command, "device"), "--device", run["device"], "--cpu",
                                str(run["threads"]), *run["arguments"]], "device", case.options,
                               [self.at("models.hmm"), targets], case.traits.table)
        seconds, errors = self.execute(command, environment)
        return [Results(self.at("device"))], seconds, errors, [f"HMMJIT_CACHE_DIR=({run['cache']})"] + command

    @staticmethod
    def sizes(run, names):
        """(name, value) of each of these arguments of a run."""
        return [(name, run["arguments"][run["arguments"].index(name) + 1]) for name in names if name in run["arguments"]]

    def served(self, program, case, targets, run, environment):
        socket, models = self.at("socket"), self.at("models.hmm")
        kept, inputs = (models, ["d", targets]) if case.command == "scan" else (targets, [models, "d"])
        serve = [program, "serve", "--db", f"d={kept}", "--socket", socket, "--device", run["device"], "--cpu",
                 str(run["threads"]), *(word for pair in self.sizes(run, ["--vram"]) for word in pair)]
        names = [f"device{i}" for i in range(case.clients)]
        commands = [self.command([*self.exact(program, case.command, name), "--server", socket], name, case.options, inputs)
                    for name in names]
        begun = time.monotonic()
        with open(self.at("server.log"), "wb") as log:
            server = subprocess.Popen(serve, env=environment, stderr=log)
        try:
            while not os.path.exists(socket) and server.poll() is None and time.monotonic() < begun + 60:
                time.sleep(0.02)
            with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
                errors = [text for _, text in pool.map(self.execute, commands)]
        finally:
            server.terminate()
            try:
                status = server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                status = server.wait()
        with open(self.at("server.log")) as log:
            said = [line for line in log.read().split("\n") if line and ": ready with" not in line and ": ending" not in line]
        if status not in (0, 143, -15):
            raise Failure(f"the server ended with {status}: {' '.join(said)}")
        return [Results(self.at(n)) for n in names], time.monotonic() - begun, "\n".join(said + errors).strip(), serve

    def of_session(self, case, targets, run, environment):
        short = {"--nobias": ("bias_filter", False), "--nonull2": ("null2", False), "--max": ("max", True)}
        shown = {"--noali": ("alignments", False), "--notextw": ("text_width", 0), "--acc": ("prefer_accession", True)}
        options, report, words = {}, {}, iter(case.options)
        for word in words:
            if word in short:
                options.update([short[word]])
            elif word in shown:
                report.update([shown[word]])
            else:
                value = float(next(words))
                options[word.lstrip("-")] = int(value) if word == "--seed" else value
        sizes = {"memory" if name == "--mem" else name[2:]: int(value) if name == "--verify" else value
                 for name, value in self.sizes(run, ["--mem", "--vram", "--verify"])}
        command = [sys.executable, "-c", SESSION, self.settings.package, self.settings.shared_library, run["device"],
                   str(run["threads"]), self.at("device"), self.at("models.hmm"), targets, json.dumps([options, report]),
                   json.dumps(sizes)]
        seconds, errors = self.execute(command, environment)
        return [Results(self.at(f"device{i}")) for i in range(3)], seconds, errors, command[3:]

    def oracle(self, options, targets):
        self.execute(self.command([self.settings.oracle, "--cpu", "0"], "oracle", options, [self.at("models.hmm"), targets]))
        return Results(self.at("oracle"), statistics=False)

    def cache(self, state, seed):
        """A folder in that state; to be removed by cache_done() unless it is the warm one."""
        if state == "warm":
            return self.settings.warm
        folder = tempfile.mkdtemp(prefix="cache", dir=self.folder)
        if state == "empty":
            return folder
        # Which half: by the seed and the entry's name, so that it does not matter what else is there.
        for root, _, files in os.walk(self.settings.warm):
            there = os.path.join(folder, os.path.relpath(root, self.settings.warm))
            os.makedirs(there, mode=0o700, exist_ok=True)
            for name in files:
                if name.endswith(".entry") and hashlib.sha256(f"{seed} {name}".encode()).digest()[0] < 128:
                    try:
                        os.link(os.path.join(root, name), os.path.join(there, name))
                    except OSError:
                        shutil.copy2(os.path.join(root, name), os.path.join(there, name))
        return folder

    def cache_done(self, folder):
        if folder != self.settings.warm:
            shutil.rmtree(folder, ignore_errors=True)


def one_search(runner, case, settings):
    """Makes the search of a seed; the line for the log."""
    record = case.describe()
    targets = runner.write(case, case.models, case.targets)
    plain = runner.at("targets.fasta")
    want, record["cpu_seconds"] = runner.cpu(case, plain, case.report_threads)
    queries = len(case.targets if case.command == "scan" else case.models)
    if case.command != "jackhmmer" and len(want.sections()) != queries:
        raise Failure(f"{queries} queries written, {len(want.sections())} reported")
    record["passed"] = want.counters["passed"]
    record["pairs"] = len(case.models) * len(case.targets)
    record["runs"], record["differences"] = [], []
    for number, run in enumerate(case.runs):
        folder = runner.cache(run["cache"], f"{case.seed} {number}")
        try:
            found, seconds, errors, command = runner.device(case, targets, run, folder)
            statistics = found[-1].statistics
            gpu, every = statistics["gpu"], statistics["target_blocks"] * len(case.models)
            entry = dict(run, seconds=seconds, state=gpu["state"], launches=gpu.get("launches", 0),
                         share=min(1, gpu.get("blocks_done", 0) / every) if every else 0, searches=len(found),
                         compiled=gpu.get("kernels", {}).get("compiled", 0),
                         evictions=gpu.get("evictions", 0), difference=next(filter(None, map(want.difference, found)), ""))
            if errors:
                entry["stderr"] = errors[:500]
            if gpu.get("reason"):
                entry["reason"] = gpu["reason"][:300]
        except Failure as failure:
            entry = dict(run, seconds=0, state="failed", launches=0, share=0, searches=1, difference=str(failure))
            command = []
        finally:
            runner.cache_done(folder)
        record["runs"].append(entry)
        if entry["difference"]:
            record["differences"].append(number)
            entry["command"] = " ".join(command)
    # hmmsearch works on one core: only what it can do in some seconds.
    if case.ask_oracle and record["cpu_seconds"] * case.report_threads < settings.oracle_seconds:
        try:
            record["oracle"] = want.difference(runner.oracle(case.options, plain)).replace("device", "hmmsearch")
        except Failure as failure:  # of hmmsearch alone: what was found before stays
            record["oracle_failure"] = str(failure)
    return record


# ---- a difference is reduced -----------------------------------------------------------------------

class Reduction:
    """Leaves out models, then targets, without which a search still differs."""

    def __init__(self, runner, case, number, seconds):
        self.runner, self.case, self.run, self.number = runner, case, case.runs[number], number
        self.end = time.monotonic() + seconds
        self.tries, self.difference = 0, ""

    def differs(self, models, targets):
        self.tries += 1
        folder = self.runner.cache(self.run["cache"], f"{self.case.seed} {self.number}")
        try:
            path = self.runner.write(self.case, models, targets)
            want, _ = self.runner.cpu(self.case, self.runner.at("targets.fasta"), 4)
            found = next(filter(None, map(want.difference, self.runner.device(self.case, path, self.run, folder)[0])), "")
        except Failure as failure:
            found = str(failure)
        finally:
            self.runner.cache_done(folder)
        if found:
            self.difference = found
        return bool(found)

    def reduced(self, items, test):
        """Leaves out ever shorter parts."""
        size = len(items) // 2
        while size:
            for at in reversed(range(0, len(items), size)):
                rest = items[:at] + items[at + size:]
                if time.monotonic() < self.end and rest and test(rest):
                    items = rest
            size //= 2
        return items

    def work(self):
        case, models, targets = self.case, self.case.models, self.case.targets
        if not any(self.differs(models, targets) for _ in range(5)):
            return {"repeats": False, "tries": self.tries}
        for _ in range(2):  # once more, with fewer targets
            models = self.reduced(models, lambda some: self.differs(some, targets))
            targets = self.reduced(targets, lambda some: self.differs(models, some))
        self.runner.write(case, models, targets)
        out = {"repeats": True, "tries": self.tries, "models": [(m.name, m.M) for m in models][:50],
               "model_count": len(models), "target_count": len(targets),
               "targets": [(t[0].split()[0].decode(errors="replace") if t[0].split() else "", len(t[1]))
                           for t in targets[:20]], "difference": self.difference[:1000]}
        if self.runner.settings.keep:
            os.makedirs(self.runner.settings.keep, exist_ok=True)
            for name in ("models.hmm", "targets.fasta"):
                with open(self.runner.at(name), "rb") as source, gzip.open(
                        os.path.join(self.runner.settings.keep, f"{case.seed}.{name}.gz"), "wb") as kept:
                    shutil.copyfileobj(source, kept)
            out["kept"] = os.path.join(self.runner.settings.keep, f"{case.seed}.*")
        return out


# ---- the campaign ----------------------------------------------------------------------------------

def work(number, settings, pool, results, next_seed, reductions, end):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = Runner(settings, os.path.join(settings.folder, f"worker{number}"))
    while time.monotonic() < end:
        with next_seed.get_lock():
            seed = next_seed.value
            if seed >= settings.seed + settings.searches:
                break
            next_seed.value += 1
        begun = time.monotonic()
        record = {"seed": seed}
        try:
            case = Case(seed, pool, settings)
            record["making_seconds"] = time.monotonic() - begun
            record.update(one_search(runner, case, settings))
            if record["differences"]:
                with reductions.get_lock():
                    wanted, reductions.value = reductions.value > 0, reductions.value - 1
                if wanted:
                    record["reduced"] = Reduction(runner, case, record["differences"][0],
                                                  settings.reduce_seconds).work()
        except Failure as failure:
            record["failure"] = str(failure)
        except Exception:
            record["failure"] = traceback.format_exc()
        record["seconds"] = time.monotonic() - begun
        results.put(record)
    results.put(None)


class Tally:
    """Runs, pairs, differing and warned runs under headings."""

    def __init__(self):
        self.rows = collections.OrderedDict()

    def add(self, heading, name, pairs, run):
        row = self.rows.setdefault((heading, name), [0, 0, 0, 0, 0.0, 0])
        for i, value in enumerate((1, pairs * run["searches"], bool(run["difference"]), "stderr" in run, run["share"],
                                   run["launches"] > 0)):
            row[i] += value

    def text(self):
        out = [f"{'':34}{'tried':>8}{'on device':>10}{'pairs':>16}{'differ':>8}{'warned':>8}{'device share':>14}"]
        for (heading, name), (runs, pairs, differ, warned, share, used) in sorted(self.rows.items()):
            out.append(f"{heading + ': ' + name:34}{runs:8}{used:10}{pairs:16,}{differ:8}{warned:8}{share / runs:13.0%}")
        return "\n".join(out)


def warning_kind(text):
    """A warning without its numbers, names and paths."""
    text = re.sub(r"^hmmjit( \w+)?: ", "", text.split("\n")[0])
    return re.sub(r"/\S+|'[^']*'|\"[^\"]*\"|\b[0-9a-f]{12,}\b|\d[\d.,]*( ?[KMG]i?B)?", "#", text)[:150]


def lengths_of(text):
    return "1 to 1024" if text <= 1024 else "1025 to 1536" if text <= 1536 else "above 1536"


class Found:
    """What was wrong: printed at once, and again behind the tables, where it is not lost among warnings."""

    @staticmethod
    def shortened(text, most):
        """Both ends: an error stands behind a long command, or at the end of a stack."""
        return text if len(text) <= most else f"{text[:most // 3]} ... {text[-(most - most // 3 - 5):]}"

    def __init__(self):
        self.lines = []

    def add(self, line, more=""):
        self.lines.append(self.shortened(line, 1000))
        print(self.shortened(line, 2000) + more, flush=True)

    def print_again(self):
        if self.lines:
            print(f"{len(self.lines)} failures and differences:", *self.lines, sep="\n", flush=True)


def report_record(record, tally, totals, found, log):
    totals["searches"] += 1
    if log:
        log.write(json.dumps(record) + "\n")
        log.flush()
    if "failure" in record:
        totals["failed"] += 1
        found.add(f"FAILED seed {record['seed']}: {record['failure']}")
        return
    totals["pairs"] += record["pairs"]
    totals["cpu_seconds"] += record["cpu_seconds"]
    if "oracle" in record:
        totals["oracle"] += 1
        totals["oracle_pairs"] += record["pairs"]
        if record["oracle"]:
            totals["oracle_differs"] += 1
            found.add(f"DIFFERS FROM hmmsearch seed {record['seed']}: {record['oracle']}")
    if "oracle_failure" in record:
        totals["oracle_failed"] += 1
        found.add(f"hmmsearch FAILED seed {record['seed']}: {record['oracle_failure']}")
    for run in record["runs"]:
        differs = bool(run["difference"])
        totals["runs"] += 1
        totals["run_pairs"] += record["pairs"] * run["searches"]
        totals["device_pairs"] += record["pairs"] * run["share"]
        totals["launches"] += run["launches"]
        totals["used"] += run["launches"] > 0
        if "stderr" in run:
            totals["warnings"] += 1
            totals["warned: " + warning_kind(run["stderr"])] += 1
        add = lambda heading, name: tally.add(heading, name, record["pairs"], run)
        add("all", "runs")
        add("program", record["program"])
        add("cache", run["cache"])
        add("threads", f"{run['threads']:2}")
        add("device", run["device"])
        add("library", record["library"])
        add("longest model", lengths_of(record["longest"]))
        add("targets", record["kind"])
        add("filters", record["filters"])
        add("input", "database" if record["database"] else "FASTA")
        for argument in record["options"].split() + run["arguments"]:
            if argument.startswith("-") and not argument[1:2].isdigit():
                add("option", argument)
        if differs:
            totals["differing"] += 1
            found.add(f"DIFFERS seed {record['seed']} ({run['cache']} cache, {run['threads']} threads): "
                      f"{run['difference']}",
                      f"\n  command: {run.get('command', '')}\n"
                      f"  again: {sys.argv[0]} ... --only {record['seed']}")
    if "reduced" in record:
        print(f"REDUCED seed {record['seed']}: {json.dumps(record['reduced'])}", flush=True)


def campaign(settings, pool):
    context = multiprocessing.get_context("fork")
    results, next_seed = context.Queue(), context.Value("q", settings.seed)
    reductions = context.Value("i", settings.reduce_most)
    begun = time.monotonic()
    workers = [context.Process(target=work, args=(i, settings, pool, results, next_seed, reductions,
                                                  begun + settings.seconds))
               for i in range(settings.workers)]
    tally, totals, found = Tally(), collections.Counter(), Found()
    log = open(settings.log, "a") if settings.log else None

    def stop(*_):
        raise KeyboardInterrupt
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, stop)
    try:
        left = len(workers)
        while left:
            try:
                record = results.get(timeout=1)
            except queue.Empty:
                if not any(w.is_alive() for w in workers) and results.empty():
                    break
                continue
            if record is None:
                left -= 1
                continue
            report_record(record, tally, totals, found, log)
    except KeyboardInterrupt:
        left = 0
        print("interrupted", flush=True)
    for worker in workers:
        if worker.is_alive():
            worker.join(1)
        if worker.is_alive():
            worker.terminate()
    minutes = (time.monotonic() - begun) / 60
    if left and not any(w.is_alive() for w in workers):
        totals["failed"] += 1
        found.add("FAILED: a worker ended early")
    print(tally.text())
    print(f"{totals['searches']} searches (seeds {settings.seed} to {next_seed.value - 1}) in {minutes:.1f} "
          f"minutes, {totals['searches'] / minutes:.0f} a minute; {totals['runs']} runs on the device, "
          f"{totals['used']} of them used it; {totals['pairs']:,} pairs of model and target, "
          f"{totals['run_pairs']:,} compared in all, {round(totals['device_pairs']):,} of them filtered on the "
          f"device, {totals['launches']:,} launches; {totals['differing']} runs differ, "
          f"{totals['failed']} searches failed, {totals['warnings']} runs warned")
    for kind in sorted(name for name in totals if name.startswith("warned: ")):
        print(f"{totals[kind]:6} {kind}")
    if totals["oracle"] or totals["oracle_failed"]:
        print(f"{totals['oracle']} searches ({totals['oracle_pairs']:,} pairs) compared with hmmsearch --cpu 0: "
              f"{totals['oracle_differs']} differ; hmmsearch failed in {totals['oracle_failed']} others")
    if settings.device != "cpu" and totals["used"] == 0:
        found.add("FAILED: no run used the device")
    if totals["searches"] == 0:
        found.add("FAILED: no search was made")
    found.print_again()
    return 1 if found.lines else 0


# ---- command line ----------------------------------------------------------------------------------

def gpu_count(program):
    done = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True)
    checks = json.loads(done.stdout).get("checks", []) if done.stdout else []
    return sum(c["check"].startswith("device ") and c["outcome"] == "ok" for c in checks)


def parse(arguments):
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="hmmjit")
    parser.add_argument("--models", nargs="+", required=True, help="files of models; may be .gz or .bz2")
    parser.add_argument("--targets", nargs="+", required=True, help="FASTA files; may be .gz or .bz2")
    parser.add_argument("--seconds", type=float, default=60, help="no search is begun after that")
    parser.add_argument("--searches", type=int, default=10**9, help="so many searches at most")
    parser.add_argument("--seed", type=int, default=None, help="of the first search; the next have the next")
    parser.add_argument("--only", type=int, help="make the search of this seed again")
    parser.add_argument("--workers", type=int, default=max(2, cores // 3), help="searches at a time")
    parser.add_argument("--core-seconds", type=float, default=12, help="a search's CPU work at most")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="kinds of library: %(default)s")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a run may take")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="cpu: a dry run without a GPU")
    parser.add_argument("--programs", default="search", help=f"some of {', '.join(PROGRAMS)}; all")
    parser.add_argument("--package", default=os.path.join(HERE, "..", "..", "engine", "api", "python"),
                        help="folder of the Python package, for sessions")
    parser.add_argument("--shared-library", metavar="LIBHMMJIT", help="for sessions")
    parser.add_argument("--devices", default="1,2", help="numbers of GPUs a search uses, where there are so many")
    parser.add_argument("--device-program", help="another program for the device's side")
    parser.add_argument("--oracle", metavar="HMMSEARCH", help="compare the CPU's results with this program's")
    parser.add_argument("--oracle-share", type=float, default=0.1, help="of the searches")
    parser.add_argument("--oracle-seconds", type=float, default=3, help="for searches of so many core-seconds at most")
    parser.add_argument("--reduce-seconds", type=float, default=60, help="for each reduction")
    parser.add_argument("--reduce-most", type=int, default=3, help="so many differences are reduced")
    parser.add_argument("--keep", help="folder for reduced models and targets")
    parser.add_argument("--log", help="one line of JSON for each search is added to it")
    parser.add_argument("--work", help="folder for scratch files; in memory if absent")
    parser.add_argument("--warm-cache", help="folder of the warm kernel cache, which is filled first; to be used by further runs")
    settings = parser.parse_args(arguments)
    settings.libraries = settings.libraries.split(",")
    if not settings.libraries or not set(settings.libraries) <= set(LIBRARIES):
        parser.error(f"--libraries takes some of {', '.join(LIBRARIES)}")
    settings.programs = list(PROGRAMS) if settings.programs == "all" else settings.programs.split(",")
    if not set(settings.programs) <= set(PROGRAMS):
        parser.error(f"--programs takes some of {', '.join(PROGRAMS)}")
    if "session" in settings.programs and not settings.shared_library:
        parser.error("searches of a session need --shared-library")
    if settings.seed is None:
        settings.seed = random.SystemRandom().randrange(1, 2**30)
    if settings.only is not None:
        settings.seed, settings.searches, settings.workers = settings.only, 1, 1
    if settings.oracle is None:
        settings.oracle_share = 0.0
    settings.device_program = settings.device_program or settings.program
    return settings


def main():
    settings = parse(sys.argv[1:])
    if settings.device == "cpu":
        settings.device_texts = ["cpu"]
    else:
        there, wanted = gpu_count(settings.program), settings.devices.split(",")
        settings.device_texts = [f"gpu:{i}" for i in range(min(2, there))] if "1" in wanted else []
        settings.device_texts += ["gpu:0,1"] if "2" in wanted and there > 1 else []
        if not settings.device_texts:
            print("SKIPPED: no GPU can be used here (hmmjit doctor says why)")
            return SKIPPED
    begun = time.monotonic()
    pool = Pool(settings.models, settings.targets)
    if "nhmmer" in settings.programs and not (pool.dna_groups and pool.dna):
        sys.exit("random_searches.py: nhmmer needs models and targets of DNA among the files")
    parent = settings.work or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with tempfile.TemporaryDirectory(prefix="random_searches", dir=parent, ignore_cleanup_errors=True) as folder:
        settings.folder = folder
        settings.warm = settings.warm_cache or os.path.join(folder, "warm")
        os.makedirs(settings.warm, mode=0o700, exist_ok=True)
        if settings.device == "gpu":
            fill_cache(settings, pool)
        models, targets, residues = pool.counts()
        print(f"seed {settings.seed}; {models} models, {targets:,} targets, {residues:,} residues; "
              f"devices {', '.join(settings.device_texts)}; {settings.workers} searches at a time; ready after "
              f"{time.monotonic() - begun:.1f} s", flush=True)
        return campaign(settings, pool)


def fill_cache(settings, pool):
    """The kernels of all models, and of the lengths that models are cut to."""
    lengths = sorted({m.M for g in pool.groups for m in g} | {e + d for e in EDGES for d in range(-2, 3)}
                     | set(range(1025, 1537, 16)))
    begun = time.monotonic()
    done = subprocess.run([settings.program, "cache", "warm", *(f"--length={n}" for n in lengths)],
                          env=dict(os.environ, HMMJIT_CACHE_DIR=settings.warm), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"random_searches.py: cache warm failed: {done.stderr.strip()[-1000:]}")
    print(f"warm cache: {time.monotonic() - begun:.1f} s, {done.stdout.strip()[-200:]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
