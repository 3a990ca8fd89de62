#!/usr/bin/env python3
"""Clang accepts the flags of every library, and compiles the least portable sources without a warning.

usage: clang_test.py SOURCE_TREE COMPILER FOLDER

Configures the tree in FOLDER with COMPILER, a Clang, and compiles some sources as each library compiles its own, but
without optimization: the first one of every library, all of vector code, and every fuzz program as libFuzzer gets it.
With ccache an unchanged source takes no time. Exit status 77: COMPILER is not there, or cannot compile the tree
(cmake/compiler.cmake).
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

tree, compiler, folder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
if shutil.which(compiler) is None:
    print(f"SKIPPED: {compiler} is not installed (tools/install_packages.sh --clang)")
    sys.exit(77)
configured = subprocess.run(
    ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release",
     "-DHMMJIT_DEVELOPER_MODE=ON", "-DHMMJIT_LIBFUZZER=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
    capture_output=True, text=True)
if configured.returncode != 0:
    print(configured.stdout[-2000:], configured.stderr[-2000:])
    sys.exit(77 if "std::expected" in configured.stderr else 1)

chosen, libraries = [], set()
for command in json.loads((folder / "compile_commands.json").read_text()):
    source = pathlib.Path(command["file"])
    if not source.is_relative_to(tree) or source.is_relative_to(folder):
        continue
    name = str(source.relative_to(tree))
    library = re.search(r" -o \S*CMakeFiles/([^/]+)\.dir/", command["command"]).group(1)
    fuzz_program = re.match(r"tests/fuzz/.*_fuzz\.cpp", name)
    if source.suffix != ".cpp" or not (fuzz_program or name.split("/")[0] in ("engine", "cache", "tools")):
        continue
    vector_code = re.match(r"engine/(domain|cpu)/.*kernels.*\.cpp", name)
    if library in libraries and not vector_code and not fuzz_program:
        continue
    libraries.add(library)
    chosen.append((library, name, command))
assert len(libraries) > 15, libraries
assert sum("kernels" in name for _, name, _ in chosen) > 2, [name for _, name, _ in chosen]
fuzzed = {name for _, name, command in chosen if "-fsanitize=fuzzer " in command["command"]}
assert len(fuzzed) == len(list(tree.glob("tests/fuzz/*_fuzz.cpp"))), fuzzed
ccache = ["ccache"] if shutil.which("ccache") else []
os.environ.setdefault("CCACHE_BASEDIR", str(tree))


def check(library, name, command):
    words = shlex.split(command["command"])
    words = words[words.index(next(word for word in words if "clang" in os.path.basename(word))):]
    made = folder / words[words.index("-o") + 1]
    made.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*ccache, *words, "-O0"], cwd=command["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{library}, {name}:\n{done.stderr[:1500]}"


with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    failed = [text for text in pool.map(lambda one: check(*one), chosen) if text]
print(f"{len(chosen)} sources of {len(libraries)} libraries, {len(failed)} refused")
print("\n".join(failed))
sys.exit(1 if failed else 0)
