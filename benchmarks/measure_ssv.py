#!/usr/bin/env python3
"""Measures which split of a size class into byte and 16-bit words is fastest, on a GPU.

usage: measure_ssv.py --hmmjit BIN --work FOLDER [--models-only | --from JSON ...]
                      [--targets FILE] [--longest N] [--output HEADER]

The registers and the order of loads that the assembler finds differ between neighbouring splits by
up to 5 % in speed, in ways no model of the device predicts. So they are measured: one random model
of every size class (made with hmmbuild of Debian's package hmmer), the most promising splits of
each, 250 million residues, every answer compared with the CPU's. The script writes
engine/plan/variants/ssv_measured.hpp, which the planner asks before its own prediction.

  --models-only  only makes the models, in FOLDER/classes, for a machine that has no hmmbuild
  --from         takes the measurements of these files (`hmmjit bench --json`) instead of making them
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys

HEAD = '''\
// The fastest split of each size class among multi_lane_mixed's, as measured.
// Made by benchmarks/measure_ssv.py on one {device} ({sms} SMs, {ghz:.2f} GHz): {kernels} kernels,
// {residues} residues, median of {launches} launches, {answers} answers equal to the CPU's.
// Neighbouring splits differ by up to {spread:.0f} % through the assembler's choice of registers and order of
// loads, which no model of the device predicts.
#pragma once

#include <array>
#include <cstdint>

namespace hmmjit::plan::ssv_measured {{

struct MeasuredSplit {{
  std::int16_t length;  ///< positions of the size class
  std::int8_t lanes, byte_words, half_words;
  std::int16_t gcups;  ///< for the class, on {sms} SMs at {ghz:.2f} GHz
}};

constexpr int kMeasuredCapability = {capability};
constexpr double kMeasuredSms = {sms}, kMeasuredGigahertz = {ghz:.2f};
// clang-format off
constexpr std::array<MeasuredSplit, {count}> kMeasured{{{{
{rows}
}}}};
// clang-format on

}}  // namespace hmmjit::plan::ssv_measured
'''
# Frequencies of amino acids in Swiss-Prot, per mille.
FREQUENT = dict(A=79, C=15, D=54, E=67, F=40, G=70, H=23, I=59, K=59, L=96, M=24, N=41, P=48, Q=40,
                R=54, S=68, T=54, V=67, W=11, Y=30)


def classes(program, longest):
    """The planner's size classes of 20 to `longest` positions."""
    found, length = [], 20
    while length <= longest:
        said = subprocess.run([program, "plan", "--length", str(length), "--device", "H200", "--stage",
                               "ssv", "--json"], check=True, capture_output=True, text=True).stdout
        found.append(json.loads(said)["plans"][0]["class_length"])
        length = found[-1] + 1
    return found


def make_model(path, length):
    random.seed(length)
    residues = "".join(random.choices(list(FREQUENT), list(FREQUENT.values()), k=length))
    fasta = path + ".fasta"
    with open(fasta, "w") as sink:
        sink.write(f">random{length}\n{residues}\n")
    # Short simulations: the parameters must be present, not precise.
    subprocess.run(["hmmbuild", "--amino", "--singlemx", "--EmN", "20", "--EvN", "20", "--EfN", "20",
                    "-n", f"random{length}", path, fasta], check=True, stdout=subprocess.DEVNULL)
    os.remove(fasta)


def measure(arguments, models):
    out = []
    # Two runs: with long models fewer splits keep the device busy.
    for name, group, most in (("short", [m for m in models if m[0] <= 1024], 16),
                              ("long", [m for m in models if m[0] > 1024], 9)):
        if not group:
            continue
        done = subprocess.run(
            [arguments.hmmjit, "bench", "--models", *[path for _, path in group], "--targets",
             arguments.targets, "--residues", "250M", "--distinct", "2000", "--seconds", "5",
             "--stage", "ssv", "--exact-length", "--variant", "multi_lane_mixed", "--candidates",
             str(most), "--json"], check=True, capture_output=True, text=True)
        out.append(os.path.join(arguments.work, name + ".json"))
        with open(out[-1], "w") as sink:
            sink.write(done.stdout)
    return out


def header(files):
    runs = []
    for path in files:
        with open(path) as source:
            runs.append(json.load(source))
    of_class = collections.defaultdict(list)
    for run in runs:
        for m in run["measurements"]:
            of_class[m["model_length"]].append(m)
    rows, spread = [], 0.0
    for length, measured in sorted(of_class.items()):
        best = max(measured, key=lambda m: m["gcups"])
        predicted = max(measured, key=lambda m: m["predicted_gcups"])
        spread = max(spread, 100 * (1 - predicted["gcups"] / best["gcups"]))
        c = best["constants"]
        rows.append(f"{{{length}, {c['kL']}, {c['kHb']}, {c['kHh']}, {best['gcups']:.0f}}},")
    lines, line = [], "   "
    for row in rows:
        if len(line) + 1 + len(row) > 100:
            lines.append(line)
            line = "   "
        line += " " + row
    device = runs[0]["device"]
    wrong = sum(run["summary"]["wrong"] for run in runs)
    if wrong:
        sys.exit(f"{wrong} answers differ from the CPU's: nothing written")
    first = runs[0]["measurements"][0]
    return HEAD.format(
        device=device["name"], sms=device["sm_count"], ghz=device["clock_khz"] / 1e6,
        capability=int(device["architecture"][3:]), kernels=sum(map(len, of_class.values())),
        residues=f"{first['residues']:,}", launches=first["launches"],
        answers=f"{sum(run['summary']['answers'] for run in runs):,}", spread=spread,
        count=len(rows), rows="\n".join(lines + [line]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--hmmjit", default="build/release/bin/hmmjit")
    parser.add_argument("--work")
    parser.add_argument("--targets")
    parser.add_argument("--longest", type=int, default=3600)
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--from", dest="measured", nargs="*")
    parser.add_argument("--output", default="engine/plan/variants/ssv_measured.hpp")
    arguments = parser.parse_args()
    files = arguments.measured
    if not files:
        folder = os.path.join(arguments.work, "classes")
        if not os.path.isdir(folder):
            os.makedirs(folder)
            for length in classes(arguments.hmmjit, arguments.longest):
                make_model(f"{folder}/{length:05}.hmm", length)
        if arguments.models_only:
            return
        files = measure(arguments, [(int(name[:5]), f"{folder}/{name}")
                                    for name in sorted(os.listdir(folder))])
    text = header(files)
    with open(arguments.output, "w") as sink:
        sink.write(text)


if __name__ == "__main__":
    main()
