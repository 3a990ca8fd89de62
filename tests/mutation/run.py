#!/usr/bin/env python3
"""Makes small errors in a copy of the tree, one at a time, and reports those that no test detects.

  run.py --list PATH ...                      print the mutants of these files and folders
  run.py --work FOLDER [--sample N] PATH ...  build in FOLDER (kept, so that the next run builds little) and run them

Mutants are generated from the source as it is, by the rules below. Each is built and given to the tests of its folder;
it is detected if one of them fails, crashes or exceeds its time limit, all of which pass without it. A mutant that the
compiler refuses does not count. Survivors are listed at the end, without those that survivors.toml excuses: line and
mutated line, with the reason why no test can or need detect them. The exit status is 1 if others remain.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
TESTS = {  # test programs, with their filters, of a folder; the longest name that fits counts
    "engine/core": ["test_core:*", "test_io:*", "test_search:*", "cache_test:*", "test_report:*"],
    "engine/model": ["test_model:*", "test_build:*"], "engine/io": ["test_io:*"],
    "engine/work": ["test_work:*", "test_gpu_search:GpuFiltersTest.*"], "engine/reference": ["test_reference:*", "test_cpu_filters:*"],
    "engine/layout": ["lockstep_test:*", "late_lockstep_test:*", "test_gpu_search:MixedLengths*:PackedTargets*:DomainStage*"],
    "engine/cpu": ["test_cpu_filters:*"], "engine/domain": ["test_domain:*", "test_nucleotide:*"], "engine/build": ["test_build:*"],
    "engine/plan": ["test_plan:*", "test_golden:*"], "engine/render": ["test_render:*", "test_golden:*"],
    "engine/compile": ["test_compile:*", "test_kernel_provider:*"], "engine/driver": ["test_driver:*"], "cache": ["cache_test:*"],
    "engine/nucleotide": ["test_nucleotide:*", "test_device_scan:*"],
    # The longest tests come last: a mutant is seen by the first that fails.
    "engine/gpu": ["test_gpu_search:-*EveryCall*:*ADeviceLost*:DomainStage*:RandomLibraries*:GpuSearch.*",
                   "test_gpu_search:GpuSearch.*:RandomLibraries*", "test_gpu_search:DomainStage*"],
    "engine/bench": ["test_bench:*"],
    "engine/search": ["test_search:*", "test_gpu_search:GpuSearch.*"], "engine/report": ["test_report:*"],
    "engine/parts": ["test_parts:*"], "engine/api": ["test_api:*"], "tools": ["test_search_options:*"],
    "kernel_templates": ["lockstep_test:*", "late_lockstep_test:*", "test_gpu_search:Gate*:DomainStage*"],
}
RULES = [  # (name, pattern, replacement): each match outside comments and strings is one mutant
    ("comparison", r" (<=?) ", lambda m: " < " if m[1] == "<=" else " <= "),
    ("comparison", r" (>=?) ", lambda m: " > " if m[1] == ">=" else " >= "),
    ("comparison", r" ([!=]=) ", lambda m: " == " if m[1] == "!=" else " != "),
    ("logic", r" (&&|\|\|) ", lambda m: " || " if m[1] == "&&" else " && "),
    ("negated condition", r"\bif \((?!constexpr)([^;={}]+)\)(?= |$)", r"if (!(\1))"),
    ("arithmetic", r"(?<=[\w)\]]) ([-+*/%]) (?=[\w(])", lambda m: {"+": " - ", "-": " + "}.get(m[1], " + ")),
    ("minimum", r"\b(min|max)\(", lambda m: "max(" if m[1] == "min" else "min("),
    ("truth value", r"\b(true|false)\b", lambda m: "false" if m[1] == "true" else "true"),
    ("constant", r"(?<![\w.'\[])(\d+)(?![\w.'])", lambda m: str(int(m[1]) + 1)),
    ("constant", r"(?<![\w.'])(\d+\.\d+)(?=[\sf,;)])", lambda m: str(2 * float(m[1]) or 1.0)),
    ("statement", r"^(\s+)(?!return|delete|throw|co_)[\w.\->:\[\]*]+(?:\(.*\)| [-+*|&^]?= [^;]*);$", r"\1;"),
    ("statement", r"^(\s+)(?:\+\+|--)[\w.\->:\[\]]+;$", r"\1;"),
]
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^\s*(?:#|template|static_assert|using)[^\n]*',
                    re.DOTALL | re.MULTILINE)


def mutants(path, text):
    """(path, line number, rule, line, mutated line) of each mutant.

    >>> for m in mutants("a.cpp", 'if (a < 10) {  // a < b\\n  x = std::min(a, b);\\n}\\n'): print(*m[1:], sep=" | ")
    1 | comparison | if (a < 10) {  // a < b | if (a <= 10) {  // a < b
    1 | negated condition | if (a < 10) {  // a < b | if (!(a < 10)) {  // a < b
    1 | constant | if (a < 10) {  // a < b | if (a < 11) {  // a < b
    2 | minimum |   x = std::min(a, b); |   x = std::max(a, b);
    2 | statement |   x = std::min(a, b); |   ;
    >>> list(mutants("a.cpp", '#include <a>\\n/* a < b\\n true */ say("a < 1");\\n'))
    []
    """
    plain = HIDDEN.sub(lambda m: re.sub(r"[^\n]", "\x01", m.group()), text)
    for number, (line, seen) in enumerate(zip(text.split("\n"), plain.split("\n")), 1):
        for rule, pattern, new in RULES:
            for match in re.finditer(pattern, seen):
                if rule == "negated condition" and match[1].count("(") != match[1].count(")"):
                    continue
                begin, end = match.span()
                real = re.match(pattern, line[begin:end]) if rule in ("negated condition", "statement") else match
                if real:
                    yield path, number, rule, line, line[:begin] + real.expand(new if isinstance(new, str) else new(match)) + line[end:]


def all_mutants(paths):
    listed = subprocess.run(["git", "ls-files", "--", *paths], cwd=TREE, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if name.endswith((".cpp", ".hpp", ".h", ".cu", ".cuh")) and any(name.startswith(f + "/") for f in TESTS):
            yield from mutants(name, (TREE / name).read_text())


def copy_tree(copy):
    """Copies what differs, so that a second run builds little. Warnings of unused names must not refuse mutants."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TREE, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        source, target = TREE / name, copy / name
        if source.is_file():
            content = source.read_bytes().replace(b" -Werror)", b")")
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                shutil.copymode(source, target)


def build(copy, programs):
    with open(copy / "build.log", "ab") as log:
        return subprocess.run(["cmake", "--build", "--preset", "release", "--target", *programs], cwd=copy, stdout=log, stderr=log).returncode == 0


def detected(copy, tests, limit, scenarios):
    """The first test that fails; None where all pass."""
    for program, tests_of in (test.split(":", 1) for test in tests):
        path = next(p for p in (copy / "build/release/tests").rglob(program) if p.is_file())
        try:
            run = subprocess.run([path, "--gtest_fail_fast", f"--gtest_filter={tests_of}"], timeout=limit, cwd=path.parent,
                                 capture_output=True, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return f"{program}: time limit"
        if run.returncode:
            failed = re.findall(r"^\[  FAILED  \] (\S+)|^\[ RUN      \] (\S+)", run.stdout, re.M)
            return "".join(failed[-1]).rstrip(",") if failed else f"{program}: exit status {run.returncode}"
    if scenarios:
        run = subprocess.run(["ctest", "--preset", "release", "--stop-on-failure", "--no-tests=error", "-R", scenarios], cwd=copy,
                             capture_output=True, text=True)
        if run.returncode:
            return "".join(re.findall(r"^\t *\d+ - (\S+) \(", run.stdout, re.M)[:1]) or f"ctest: exit status {run.returncode}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=0, help="so many of the mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=240, help="seconds for a test program")
    parser.add_argument("--scenarios", help="tests of the program, as ctest -R takes them, for mutants that the tests of the folder pass")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    chosen = list(all_mutants(options.paths))
    if options.sample and options.sample < len(chosen):
        chosen = sorted(random.Random(options.seed).sample(chosen, options.sample))
    if options.list or not options.work:
        for path, number, rule, old, new in chosen:
            print(f"{path}:{number}: {rule}: {old.strip()} -> {new.strip()}")
        return 0
    excused = tomllib.loads((HERE / "survivors.toml").read_text())["survivor"]
    excused = {(one["file"], one["line"], one["mutant"]) for one in excused}
    for above in (TREE, *TREE.parents):  # tests look for recorded data next to the tree, not next to the copy
        if (above / "shared" / "data").is_dir():
            os.environ.setdefault("HMMJIT_SHARED", str(above / "shared"))
    copy = options.work.resolve()
    copy.mkdir(parents=True, exist_ok=True)
    copy_tree(copy)
    subprocess.run(["cmake", "--preset", "release", "-DHMMJIT_UNITY_BUILD=OFF"], cwd=copy, check=True, stdout=subprocess.DEVNULL)
    counts, survivors, sound = {}, [], set()
    for path, number, rule, old, new in chosen:
        tests = TESTS[max((folder for folder in TESTS if path.startswith(folder + "/")), key=len)]
        programs = [test.split(":")[0] for test in tests] + (["hmmjit"] if options.scenarios else [])
        if tuple(tests) not in sound:
            if not build(copy, programs) or (fails := detected(copy, tests, 4 * options.limit, options.scenarios)):
                sys.exit(f"without any mutant: {fails if build(copy, programs) else 'the build fails, see build.log'}")
            sound.add(tuple(tests))
        lines = (TREE / path).read_text().split("\n")
        lines[number - 1] = new
        try:
            (copy / path).write_text("\n".join(lines))
            seen = detected(copy, tests, options.limit, options.scenarios) if build(copy, programs) else "does not compile"
        finally:
            (copy / path).write_text((TREE / path).read_text())
        verdict = seen or ("excused" if (path, old.strip(), new.strip()) in excused else "SURVIVED")
        kind = verdict if verdict in ("does not compile", "excused", "SURVIVED") else "detected"
        counts[kind] = counts.get(kind, 0) + 1
        print(f"{path}:{number}: {rule}: {old.strip()} -> {new.strip()}: {verdict}", flush=True)
        if kind == "SURVIVED":
            survivors.append(f'[[survivor]]\nfile = {path!r}\nline = {old.strip()!r}\nmutant = {new.strip()!r}\nreason = \'\'\n')
    print("\n" + "\n".join(survivors) + "\n" + ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
