#!/usr/bin/env python3
"""The program for 64-bit ARM gives the bytes of the program for x86-64, and of hmmsearch.

usage: arm64_test.py PROGRAM ARM64_BUILD

PROGRAM is the program of this build. ARM64_BUILD is the folder of the preset arm64, whose program and unit tests run
here under qemu. Models are those of Debian's hmmer-examples, targets are emitted by them with a seed that is printed
(HMMJIT_TEST_SEED repeats it).
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "scenario"))
import scenario  # noqa: E402
from scenario import SEED, ScratchFolder, example_model, first_difference, read, result_lines  # noqa: E402

EMULATOR = "qemu-aarch64-static"
COMPILER = "aarch64-linux-gnu-g++"
MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Caudal_act.hmm", "20aa.hmm", "Pkinase.hmm"]
# Options that change what is computed; layout does not depend on the processor.
SEARCHES = [[], ["--max"], ["--nobias"], ["--nonull2"], ["--seed", "7"], ["-E", "1000", "--domE", "1000"],
            ["--F1", "0.5", "--F2", "0.2", "--F3", "0.1"], ["--F1", "1", "--F2", "1"], ["-T", "5", "--incT", "10"],
            ["--cpu", "1", "--mem", "200K"], ["-Z", "45000000"], ["--acc", "--notextw"]]
OTHERS = [("phmmer", "query", []), ("phmmer", "query", ["--max"]), ("jackhmmer", "query", ["-N", "3"]),
          ("scan", "query", []), ("build", "alignment", []), ("build", "alignment", ["--wblosum"])]
# Tests of vector code. All cases of the filters and of the domain stage would take minutes under qemu.
UNIT_TESTS = [("cpu", "test_cpu_filters", "*EveryKindOfModelAndTarget*:*RoundedLogs*:*BiasBatch*"),
              ("model", "test_model", "*"),
              ("domain", "test_domain", "Golden*:*GivesTheSameBits*:*SeedsDecideTheSamples*")]
build = None


def missing():
    """The missing requirement and its remedy, or None."""
    if shutil.which(EMULATOR) is None:
        return f"{EMULATOR} is not installed (tools/install_packages.sh --arm64)"
    if not os.path.exists(os.path.join(build, "bin", "hmmjit")):
        compiler = "" if shutil.which(COMPILER) else f", after {COMPILER} is installed (tools/install_packages.sh --arm64)"
        return (f"no program in {build}; make one with: cmake --preset arm64 && cmake --build --preset arm64{compiler}")
    return None


def on_arm(name, arguments, **keywords):
    return scenario.run([EMULATOR, os.path.join(build, name)] + arguments, **keywords)


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class OnArm(ScratchFolder):
    def setUp(self):
        super().setUp()
        models = [example_model(name, self.folder) for name in MODELS]
        self.models = self.join_models(models, "models.hmm")
        records = scenario.emitted_targets(models, SEED, per_model=4, decoys=40)
        self.targets = self.path("targets.fasta")
        scenario.write_fasta(self.targets, records)
        self.query = self.path("query.fasta")
        scenario.write_fasta(self.query, [record for record in records if 40 < len(record[2]) < 400][:2])
        made = scenario.run(["hmmemit", "-a", "-N", "12", "--seed", str(SEED % 1000 + 1), models[0]])
        self.alignment = self.write("family.sto", made.stdout)

    def outputs(self, label, run, arguments, inputs, kinds):
        files = {kind: self.path(f"{label}.{kind}") for kind in kinds}
        options = [word for kind, path in files.items() for word in (f"-{kind}" if len(kind) == 1 else f"--{kind}", path)]
        done = run(arguments + options + inputs)
        self.assertEqual(done.returncode, 0, (label, arguments, done.stderr.decode(errors="replace")))
        return {kind: result_lines(read(path)) for kind, path in files.items()}

    def compare(self, want, got, what):
        compared = 0
        for kind, lines in want.items():
            if lines != got[kind]:
                self.fail(f"{what} {kind}: {first_difference(lines, got[kind])}")
            compared += len(lines)
        return compared

    def test_searches(self):
        kinds, lines = ["o", "A", "tblout", "domtblout", "pfamtblout"], 0
        for options in SEARCHES:
            with self.subTest(options=options):
                own = [word for word in options if word not in ("--mem", "200K")]
                inputs = [self.models, self.targets]
                want = self.outputs("hmmsearch", lambda a: scenario.run(["hmmsearch"] + a), own, inputs, kinds)
                command = ["search", "--quiet"] + options
                x86 = self.outputs("x86", lambda a: scenario.run([scenario.program] + a), command, inputs, kinds)
                arm = self.outputs("arm", lambda a: on_arm("bin/hmmjit", a), command, inputs, kinds)
                self.compare(want, x86, f"x86-64 {options}")
                lines += self.compare(want, arm, f"ARM {options}")
        print(f"{len(SEARCHES)} searches, {lines} lines as hmmsearch prints them on x86-64", flush=True)
        self.assertGreater(lines, 1000)

    def test_other_commands(self):
        for command, inputs, options in OTHERS:
            with self.subTest(command=command, options=options):
                if command == "build":
                    made = []
                    for label, run in (("x86", lambda a: scenario.run([scenario.program] + a)),
                                       ("arm", lambda a: on_arm("bin/hmmjit", a))):
                        done = run([command] + options + [self.path(label + ".hmm"), self.alignment])
                        self.assertEqual(done.returncode, 0, done.stderr)
                        made.append([line for line in read(self.path(label + ".hmm")).split(b"\n")
                                     if not line.startswith(b"DATE")])
                    self.assertEqual(*made)
                    continue
                files = [self.models, self.query] if command == "scan" else [self.query, self.targets]
                words, kinds = [command, "--quiet"] + options, ["o", "tblout", "domtblout"]
                want = self.outputs("x86", lambda a: scenario.run([scenario.program] + a), words, files, kinds)
                got = self.outputs("arm", lambda a: on_arm("bin/hmmjit", a), words, files, kinds)
                self.assertGreater(self.compare(want, got, command), 10)

    def test_a_database_of_the_other_machine(self):
        databases = [self.path("x86.hjdb"), self.path("arm.hjdb")]
        scenario.run([scenario.program, "db", "build", "-o", databases[0], self.targets])
        on_arm("bin/hmmjit", ["db", "build", "-o", databases[1], self.targets])
        self.assertEqual(*[read(path) for path in databases])

    def test_vectors_are_used(self):
        statistics = self.path("stats.json")
        done = on_arm("bin/hmmjit", ["search", "--quiet", "-o", os.devnull, "--stats", statistics, self.models,
                                     self.query])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'"cpu/NEON"', read(statistics))

    def test_unit_tests(self):
        run = 0
        for folder, name, cases in UNIT_TESTS:
            program = os.path.join(build, "tests", "unit", folder, name)
            if not os.path.exists(program):
                print(f"NOT RUN: {name} is not built (cmake --build --preset arm64 --target {name})", flush=True)
                continue
            done = subprocess.run([EMULATOR, program, "--gtest_brief=1", "--gtest_filter=" + cases], capture_output=True,
                                  timeout=280)
            print(name, done.stdout.decode(errors="replace")[-600:], flush=True)
            self.assertEqual(done.returncode, 0, name)
            run += 1
        if run == 0:
            self.skipTest("no unit test is built")


if __name__ == "__main__":
    build = os.path.abspath(sys.argv.pop(2))
    reason = missing()
    if reason:
        print(f"SKIPPED, NOTHING RUN ON ARM: {reason}")
        sys.exit(scenario.SKIPPED)
    scenario.main()
