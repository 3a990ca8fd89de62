#!/usr/bin/env python3
"""One run of everything the GPU search claims: identity, wall times, memory, device load.

usage: gpu_search.py --hmmjit BIN --models FILE --targets FILE [--hmmsearch BIN] [--library FILE ...]
                     [--one-model FILE] [--proteome FILE] [--only SECTION ...] [options]

Sections, each printed as it is done:
  many     many models x all targets: CPU, GPU with a cold and a warm kernel cache, default and
           --cut_ga, result files compared; hmmsearch --cpu N timed with default options, and its
           single-threaded output, made by one process per part of the models, compared with both
           (with workers its order of ties depends on chance)
  several  the same search on the devices of --several, results compared with the CPU's
  verify   the same with --verify 20
  one      one model x the targets --replicate times over, from a database file where the program
           can build one: CPU, GPU, auto, and with little device memory; further models of
           --one-model with CPU, GPU and auto
  large    many models x the targets --replicate times over, from a database file: CPU and GPU
  library  the --library files, repeated to 2,000 models, x the --proteome: CPU, GPU, auto
  small    ten models x the --proteome: CPU, GPU, auto
Ends with one line per claim; exits 1 if any result differs or any run fails. Comment lines of the
result files are left out of comparisons.
"""
import argparse
import concurrent.futures
import gzip
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time

REPEATS = 5  # further runs with a warm cache

SECTIONS = ("many", "several", "verify", "one", "large", "library", "small")


def result_lines(paths):
    for path in paths:
        with open(path, "rb") as stream:
            for line in stream:
                # Blank lines too: one stands after each run's header.
                if not line.startswith((b"#", b"[ok]", b"\n")):
                    yield line


def digests(prefixes):
    """Digests of the three result files, the parts of several runs one after the other."""
    out = []
    for name in ("out", "tbl", "dom"):
        digest = hashlib.sha256()
        for line in result_lines([f"{prefix}.{name}" for prefix in prefixes]):
            digest.update(line)
        out.append(digest.hexdigest()[:12])
    return tuple(out)


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as source:
        return source.read()


def split_models(data):
    return [m + b"//\n" for m in data.split(b"//\n") if m.strip()]


def busy_share(trace):
    """Share of the time from the first to the last kernel during which one was running."""
    with open(trace) as stream:
        events = json.load(stream)
    events = events if isinstance(events, list) else events["traceEvents"]
    groups = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X"
                   and groups[e["pid"]].startswith("gpu ") and groups[e["pid"]][4:].isdigit())
    if not spans:
        return None
    busy, reached = 0.0, spans[0][0]
    for begin, end in spans:
        busy += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return busy / (reached - spans[0][0])


def busy_of_searches(runs, without=None):
    """Median and range of the device's share of the searches' time, without the start if asked."""
    shares = sorted(100 * r["gpu"]["busy_seconds"] /
                    (r["wall_seconds"] - (r["gpu"][without] if without else 0)) for r in runs)
    return f"{shares[len(shares) // 2]:.0f} % ({shares[0]:.0f} to {shares[-1]:.0f})"


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.failures = 0
        self.claims = []
        self.cpu = ["--cpu", str(arguments.cpu)]
        self.env = dict(os.environ, HMMJIT_CACHE_DIR=self.at("cache"))

    def at(self, name):
        return os.path.join(self.arguments.work, name)

    def claim(self, text):
        self.claims.append(text)

    def write(self, name, data):
        with open(self.at(name), "wb") as out:
            out.write(data)
        return self.at(name)

    def execute(self, label, command, prefix, options=(), env=None, quiet=False):
        """Wall seconds, or None when the run failed."""
        command = [*command[:-2], *options, "-o", prefix + ".out", "--tblout", prefix + ".tbl",
                   "--domtblout", prefix + ".dom", *command[-2:]]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            print(f"{label}: exit {done.returncode}: {done.stderr.strip()[:500]}", flush=True)
            self.failures += 1
            return None
        cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if not quiet:
            print(f"{label:34} {wall:8.2f} s  {cores:8.1f} core-s  {done.stderr.strip()[:200]}",
                  flush=True)
        return wall

    def hmmjit(self, label, device, models, targets, name, *options):
        """Statistics of the run with its wall seconds, or None when it failed."""
        prefix = self.at(name)
        wall = self.execute(label, [self.arguments.hmmjit, "search", *self.cpu, "--device", device,
                                    *options, "--stats", prefix + ".json", "--quiet", models,
                                    targets], prefix, env=self.env)
        if wall is None:
            return None
        with open(prefix + ".json") as stream:
            s = json.load(stream)
        s["wall"] = wall
        g = s["gpu"]
        line = f"    {s['backend']}, peak {s['peak_resident_bytes'] >> 20} MB"
        if g["state"] != "off":
            line += (f"; gpu {g['state']} after {g['ready_after_seconds']:.2f} s, {g['chains']} "
                     f"chains, busy {g['busy_seconds']:.3f} of {g['active_seconds']:.2f} s, "
                     f"{g['kernels']['distinct']} kernels, {g['kernels']['compiled']} compiled, "
                     f"{g['peak_device_bytes'] >> 20} MB on the device, left open "
                     f"{g['left_open']} of {g['passed_msv'] + g['undecided']}, blocks "
                     f"{g['blocks_done']}+{g['blocks_given_back']} of "
                     f"{s['target_blocks'] * s['models']}")
            line += "\n    device seconds: " + ", ".join(
                f"{name} {stage['seconds']:.3f}" for name, stage in g["stages"].items())
        if "reason" in g:
            line += f"; {g['reason'][:200]}"
        line += "\n    core-seconds: " + ", ".join(
            f"{stage} {values['seconds']:.2f}" for stage, values in s["stages"].items()
            if "seconds" in values)
        print(line, flush=True)
        return s

    def same(self, first, second, what):
        a = digests([self.at(first)] if isinstance(first, str) else first)
        b = digests([self.at(second)])
        ok = a == b
        print(f"    {'identical' if ok else 'DIFFERENT'}: {what} {a if ok else (a, b)}", flush=True)
        self.failures += not ok
        return ok

    # ---- sections ----

    def many(self, models, targets, model_data):
        device = self.arguments.device
        parts = self.model_parts(model_data) if self.arguments.hmmsearch else []
        for option in ([], ["--cut_ga"]):
            tag = "cut_ga" if option else "default"
            alone = self.hmmjit(f"CPU, {tag}", "cpu", models, targets, tag + ".cpu", *option)
            runs = {}
            for kind in ["warm", "traced"] if option else ["cold", "warm", "traced"]:
                if kind == "warm" and not option:
                    self.warm_cache(models)
                name = f"{tag}.{kind}"
                extra = ["--trace", self.at(name + ".trace")] if kind == "traced" else []
                runs[kind] = self.hmmjit(f"GPU, {kind}, {tag}", device, models, targets, name,
                                         *option, *extra)
                if runs[kind] and kind != "cold" and runs[kind]["gpu"]["state"] != "off":
                    compiled = runs[kind]["gpu"]["kernels"]["compiled"]
                    if compiled:
                        print(f"    FAILED: {compiled} compiles with a warm cache")
                        self.failures += 1
                if runs[kind] and alone:
                    self.same(tag + ".cpu", name, f"GPU, {kind}, and CPU, {tag}")
                    if runs[kind]["passed"] != alone["passed"]:
                        print(f"    DIFFERENT counts: {alone['passed']} {runs[kind]['passed']}")
                        self.failures += 1
            if not all(runs.values()) or alone is None:
                continue
            warm = min(runs["warm"], runs["traced"], key=lambda s: s["wall"])
            text = f"{tag}: hmmjit CPU {alone['wall']:.2f} s, GPU warm {warm['wall']:.2f} s"
            if not option:
                text += f", GPU cold {runs['cold']['wall']:.2f} s"
            if self.arguments.hmmsearch:
                wall = None if option else self.execute(
                    f"hmmsearch --cpu {self.arguments.cpu}",
                    [self.arguments.hmmsearch, *self.cpu, models, targets],
                    self.at(tag + ".hmmsearch"))
                if wall:
                    text += (f", hmmsearch {wall:.1f} s: {wall / warm['wall']:.1f} times warm, "
                             f"{wall / runs['cold']['wall']:.1f} cold")
                same = self.same(self.serial_hmmsearch(parts, targets, tag, option),
                                 tag + ".cpu", f"hmmsearch, one thread, and CPU, {tag}")
                text += f"; bytes of hmmsearch {'equal' if same else 'DIFFERENT'}"
            self.claim(text)
            if option:
                continue
            peaks = {k: s["peak_resident_bytes"] / 1e6 for k, s in runs.items()}
            cpu_peak = alone["peak_resident_bytes"] / 1e6
            self.claim(f"host peak: CPU {cpu_peak:.0f} MB, warm {peaks['warm']:.0f} MB, cold "
                       f"{peaks['cold']:.0f} MB; device peak "
                       f"{warm['gpu'].get('peak_device_bytes', 0) / 1e6:.0f} MB for "
                       f"{warm['residues'] / 1e6:.0f} M residues")
            self.claim_busy(tag + ".traced", runs["traced"])
            # A second is short enough for chance to matter: the same run some times more.
            warm_runs = [runs["warm"], runs["traced"]]
            for _ in range(REPEATS):
                again = self.hmmjit(f"GPU, warm, {tag}, again", device, models, targets,
                                    tag + ".again")
                if again:
                    warm_runs.append(again)
                    self.same(tag + ".cpu", tag + ".again", f"GPU, warm, again, and CPU, {tag}")
            walls = sorted(r["wall"] for r in warm_runs)
            self.claim(f"{len(walls)} warm runs: median {walls[len(walls) // 2]:.2f} s "
                       f"({walls[0]:.2f} to {walls[-1]:.2f}), GPU busy "
                       f"{busy_of_searches(warm_runs)} of the search, "
                       f"{busy_of_searches(warm_runs, 'ready_after_seconds')} once the driver had "
                       "started")

    def claim_busy(self, name, traced):
        share = busy_share(self.at(name + ".trace"))
        if share is None:
            return self.claim("no kernel in the trace")
        self.claim(f"GPU busy by --trace: {100 * share:.0f} % from first to last kernel, "
                   f"{100 * traced['gpu']['busy_seconds'] / traced['wall_seconds']:.0f} % of the "
                   f"search's {traced['wall_seconds']:.2f} s; domain stage: "
                   f"{traced['gpu']['parsed_targets']} of {traced['gpu']['passed']} targets, "
                   f"{traced['gpu']['sampled_regions']} regions of several domains and "
                   f"{traced['gpu']['scored_envelopes']} envelopes on the device")

    def warm_cache(self, models):
        """A run ends before all its compiles have: the rest is made here."""
        start = time.perf_counter()
        done = subprocess.run([self.arguments.hmmjit, "cache", "warm", "--model", models],
                              env=self.env, capture_output=True, text=True)
        print(f"cache warm: {time.perf_counter() - start:.2f} s, exit {done.returncode}: "
              f"{(done.stdout + done.stderr).strip()[:200]}", flush=True)

    def model_parts(self, data):
        """Contiguous parts of about equal length, more than cores so that they balance."""
        models = split_models(data)
        count = min(len(models), 3 * self.arguments.cpu)
        total, size, out, part = sum(map(len, models)), 0, [], []
        for model in models:
            part.append(model)
            size += len(model)
            if size >= total * (len(out) + 1) / count:
                out.append(self.write(f"part{len(out)}.hmm", b"".join(part)))
                part = []
        if part:
            out.append(self.write(f"part{len(out)}.hmm", b"".join(part)))
        return out

    def serial_hmmsearch(self, parts, targets, tag, option):
        def run(part):
            prefix = f"{part}.{tag}"
            self.execute("hmmsearch", [self.arguments.hmmsearch, *option, "--cpu", "0", part,
                                       targets], prefix, quiet=True)
            return prefix
        with concurrent.futures.ThreadPoolExecutor(self.arguments.cpu) as pool:
            return list(pool.map(run, parts))

    def several(self, models, targets):
        self.warm_cache(models)
        for option in ([], ["--cut_ga"]):
            tag = "cut_ga" if option else "default"
            if not os.path.exists(self.at(tag + ".cpu.out")):
                self.hmmjit(f"CPU, {tag}", "cpu", models, targets, tag + ".cpu", *option)
            for device in self.arguments.several:
                name = f"{tag}.{device.replace(':', '').replace(',', '_')}"
                s = self.hmmjit(f"{device}, {tag}", device, models, targets, name, *option)
                if s is None:
                    continue
                same = self.same(tag + ".cpu", name, f"{device} and CPU, {tag}")
                self.claim(f"{device} ({len(s['gpu'].get('devices', []))} devices), {tag}: {s['wall']:.2f} s, "
                           f"results {'equal' if same else 'DIFFERENT'}")

    def verify(self, models, targets):
        s = self.hmmjit("GPU, --verify 20", self.arguments.device, models, targets, "verify",
                        "--verify", "20")
        if s:
            self.claim(f"--verify 20: no difference, {s['wall']:.2f} s")

    def large_database(self, target_data):
        targets = self.write("large.fasta", target_data * self.arguments.replicate)
        database = self.at("large.hjdb")
        if os.path.exists(database):
            return database
        start = time.perf_counter()
        built = subprocess.run([self.arguments.hmmjit, "db", "build", targets, "-o", database],
                               capture_output=True, text=True)
        if built.returncode == 0:
            print(f"db build: {time.perf_counter() - start:.2f} s, "
                  f"{os.path.getsize(database) >> 20} MB", flush=True)
            targets = database
        else:
            print(f"no database file ({built.stderr.strip()[:120]}): FASTA", flush=True)
        subprocess.run(["cat", targets], stdout=subprocess.DEVNULL)
        return targets

    def large(self, models, target_data):
        targets = self.large_database(target_data)
        alone = self.hmmjit("many x large, CPU", "cpu", models, targets, "large.CPU")
        beside = self.hmmjit("many x large, GPU", self.arguments.device, models, targets, "large.GPU",
                             "--trace", self.at("large.GPU.trace"))
        if alone and beside:
            self.same("large.CPU", "large.GPU", "many x large, GPU, and CPU")
            self.claim(f"many models x {alone['residues'] / 1e6:.0f} M residues: CPU "
                       f"{alone['wall']:.2f} s, GPU {beside['wall']:.2f} s")
            self.claim_busy("large.GPU", beside)

    def one(self, target_data):
        model = self.write("one.hmm", read(self.arguments.one_model[0]))
        targets = self.large_database(target_data)
        walls = {}
        gpu = self.arguments.device
        for name, device, options in (("CPU", "cpu", []), ("GPU", gpu, []), ("auto", "auto", []),
                                      ("--vram 1G", gpu, ["--vram", "1G"]),
                                      ("--vram 100M", gpu, ["--vram", "100M"])):
            file = "one." + name.strip("-").replace(" ", "")
            s = self.hmmjit(f"one model, {name}", device, model, targets, file, *options)
            if s is None:
                continue
            walls[name] = s["wall"]
            if name != "CPU":
                self.same("one.CPU", file, f"one model, {name}, and CPU")
            residues = s["residues"]
        self.claim(f"one model x {residues / 1e6:.0f} M residues from "
                   f"{'a database file' if targets.endswith('.hjdb') else 'FASTA'}: " +
                   ", ".join(f"{name} {wall:.2f} s" for name, wall in walls.items()))
        for path in self.arguments.one_model[1:]:
            name = os.path.basename(path).split(".")[0]
            model = self.write(f"one.{name}.hmm", read(path))
            walls = {}
            for label, device in (("CPU", "cpu"), ("GPU", gpu), ("auto", "auto")):
                s = self.hmmjit(f"{name}, {label}", device, model, targets, f"one.{name}.{label}")
                if s is None:
                    continue
                walls[label] = s["wall"]
                if label != "CPU":
                    self.same(f"one.{name}.CPU", f"one.{name}.{label}", f"{name}, {label} and CPU")
            self.claim(f"{name} x the same residues: " +
                       ", ".join(f"{label} {wall:.2f} s" for label, wall in walls.items()))
        # Enough models that the device does have to come into it, on little memory.
        many = self.write("few.hmm", b"".join(split_models(read(self.arguments.models))[:40]))
        walls = {}
        for name, device, options in (("CPU", "cpu", []), ("GPU", gpu, []),
                                      ("--vram 1G", gpu, ["--vram", "1G"]),
                                      ("--vram 150M", gpu, ["--vram", "150M"])):
            file = "few." + name.strip("-").replace(" ", "")
            s = self.hmmjit(f"40 models, {name}", device, many, targets, file, *options)
            if s is None:
                continue
            walls[name] = (s["wall"], s["gpu"].get("peak_device_bytes", 0) / 1e6)
            if name != "CPU":
                self.same("few.CPU", file, f"40 models, {name}, and CPU")
        self.claim(f"40 models x {residues / 1e6:.0f} M residues, same bytes: " +
                   ", ".join(f"{n} {w:.2f} s ({m:.0f} MB)" for n, (w, m) in walls.items()))

    def compare_devices(self, tag, what, models):
        targets = self.write("proteome.fasta", read(self.arguments.proteome))
        walls, ready = {}, 0
        for name, device in (("CPU", "cpu"), ("GPU", self.arguments.device), ("auto", "auto")):
            s = self.hmmjit(f"{what}, {name}", device, models, targets, f"{tag}.{name}")
            if s is None:
                continue
            walls[name] = s["wall"]
            if name != "CPU":
                self.same(f"{tag}.CPU", f"{tag}.{name}", f"{what}, {name}, and CPU")
            ready = max(ready, s["gpu"].get("ready_after_seconds", 0))
        self.claim(f"{what}: " + ", ".join(f"{n} {w:.2f} s" for n, w in walls.items()) +
                   f"; driver start {ready:.2f} s")

    def library(self):
        models = [m for path in self.arguments.library for m in split_models(read(path))]
        # One file is of one format version, for hmmsearch as well: the most frequent one stays.
        versions = [m.split(b" ", 1)[0] for m in models]
        version = max(set(versions), key=versions.count)
        models = [m for m, v in zip(models, versions) if v == version]
        if len(models) < len(versions):
            print(f"library: {len(versions) - len(models)} models of other versions than "
                  f"{version.decode()} are left out", flush=True)
        repeated = (models * (2000 // len(models) + 1))[:2000]
        self.compare_devices("library", f"2,000 models ({len(models)} distinct) x one proteome",
                             self.write("library.hmm", b"".join(repeated)))

    def small(self, model_data):
        self.compare_devices("small", "10 models x one proteome",
                             self.write("ten.hmm", b"".join(split_models(model_data)[:10])))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hmmjit", required=True)
    parser.add_argument("--hmmsearch")
    parser.add_argument("--models", required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--one-model", nargs="+", default=[])
    parser.add_argument("--library", nargs="*", default=[])
    parser.add_argument("--proteome")
    parser.add_argument("--replicate", type=int, default=8)
    parser.add_argument("--work", default="/tmp/hmmjit_gpu_bench")
    parser.add_argument("--cpu", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="folder for statistics and compressed traces")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--several", nargs="*", default=[], help="as in gpu:0,1")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    os.makedirs(arguments.work)
    bench = Bench(arguments)
    model_data, target_data = read(arguments.models), read(arguments.targets)
    models = bench.write("models.hmm", model_data)
    targets = bench.write("targets.fasta", target_data)
    print(f"{arguments.cpu} threads; {len(model_data) >> 20} MB of models, "
          f"{len(target_data) >> 20} MB of targets", flush=True)
    if "many" in arguments.only:
        bench.many(models, targets, model_data)
    if "several" in arguments.only and arguments.several:
        bench.several(models, targets)
    if "verify" in arguments.only:
        bench.verify(models, targets)
    if "one" in arguments.only and arguments.one_model:
        bench.one(target_data)
    if "large" in arguments.only:
        bench.large(models, target_data)
    if "library" in arguments.only and arguments.library and arguments.proteome:
        bench.library()
    if "small" in arguments.only and arguments.proteome:
        bench.small(model_data)
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
        statistics = {name[:-5]: json.loads(read(bench.at(name)))
                      for name in sorted(os.listdir(arguments.work)) if name.endswith(".json")}
        with open(os.path.join(arguments.keep, "statistics.json"), "w") as out:
            json.dump(statistics, out, indent=1)
        for name in os.listdir(arguments.work):
            if name.endswith(".trace"):
                with open(bench.at(name), "rb") as source, gzip.open(
                        os.path.join(arguments.keep, name + ".gz"), "wb") as out:
                    shutil.copyfileobj(source, out)
    print("\n".join(["", *bench.claims, f"{bench.failures} failures"]), flush=True)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
