#!/usr/bin/env python3
"""Checks that includes follow the one-way dependency rule of ARCHITECTURE.md.

usage: check_layering.py SOURCE_DIR

Reads the #include lines of every C++ file under engine/, cache/ and tools/ and fails on an
include of a folder that the including folder may not know, on CUDA headers outside the two
files that may mention them, and on anything but the standard library in public headers. Examples are
hosts: their programs (not their tests) may include public headers, their own and other libraries', and
link hmmjit::hmmjit alone. Exits 1 with one line for each violation.
"""
import os
import re
import sys

ALLOWED = {
    "core": set(),
    "cache": {"core"},
    "model": {"core"},
    "io": {"model", "core"},
    "reference": {"model", "core"},
    "layout": {"reference", "model", "core"},
    "cpu": {"reference", "model", "core"},
    "domain": {"model", "core"},
    "build": {"domain", "cpu", "reference", "model", "core"},
    "plan": {"model", "core"},
    "render": {"plan", "model", "core"},
    "compile": {"render", "plan", "cache", "model", "core"},
    "driver": {"compile", "render", "plan", "core"},
    "gpu": {"layout", "driver", "compile", "render", "plan", "cache", "reference", "model", "core"},
    "bench": {"gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain", "cpu",
              "reference", "model", "core"},
    "search": {"build", "gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain", "cpu", "reference",
               "io", "model", "core"},
    "report": {"search", "build", "domain", "model", "core"},
    # hmmjit/... are the public headers in the library, and the program's own in tools.
    "tools": {"bench", "report", "search", "build", "gpu", "layout", "driver", "compile", "render", "plan", "cache",
              "domain", "cpu", "reference", "io", "model", "core"},
    "api": {"report", "search", "build", "gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain",
            "cpu", "reference", "io", "model", "core"},
}
CUDA_HEADERS = {"cuda.h", "nvrtc.h", "cuda_runtime.h"}
CUDA_OWNERS = ("engine/compile/nvrtc_", "engine/driver/cuda_")
PUBLIC_HEADERS = "engine/api/include/"
PUBLIC_FOLDER = PUBLIC_HEADERS + "hmmjit"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LINKED = re.compile(r"target_link_libraries\((?:[^()]|\([^()]*\))*\)")


def folder_of(path):
    parts = path.split(os.sep)
    if parts[0] in ("cache", "tools"):
        return parts[0]
    if parts[0] == "engine" and len(parts) > 2:
        return parts[1]
    return None


def files_of(root, top, endings):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), root)


def includes_of(root, path):
    """(line number, bracket, what) of each include line."""
    with open(os.path.join(root, path), encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def check_folder(root, path, here):
    public = set(os.listdir(os.path.join(root, PUBLIC_FOLDER)))
    for number, bracket, target in includes_of(root, path):
        first, _, rest = target.partition("/")
        if target in CUDA_HEADERS and not path.startswith(CUDA_OWNERS):
            yield f"{path}:{number}: CUDA header {target} outside its owner"
        if path.startswith(PUBLIC_HEADERS) and not (
                bracket == '"' and first == "hmmjit"
                or bracket == "<" and (re.fullmatch("[a-z_]+", target) or target in ("stddef.h", "stdint.h"))):
            yield f"{path}:{number}: public headers include only the standard library"
        if bracket == '"' and first in ALLOWED and first != here and first not in ALLOWED[here]:
            yield f"{path}:{number}: {here} must not include {first}"
        if first == "hmmjit" and (here not in ("api", "tools") or here == "api" and rest not in public):
            yield f"{path}:{number}: {here} must not include {target}"


def check_example(root, path, top):
    """What a program that only has the installed library could not include."""
    public = set(os.listdir(os.path.join(root, PUBLIC_FOLDER)))
    for number, bracket, target in includes_of(root, path):
        first, _, rest = target.partition("/")
        if first == "hmmjit":
            if rest not in public:
                yield f"{path}:{number}: {target} is no public header"
        elif first in ALLOWED and "/" in target or target in CUDA_HEADERS:
            yield f"{path}:{number}: examples include public headers only, not {target}"
        elif bracket == '"' and not any(os.path.exists(os.path.join(root, top, folder, target))
                                        for folder in (".", "source", "kernels")):
            yield f"{path}:{number}: {target} is not the example's own"


def check_example_build(root, path):
    with open(os.path.join(root, path), encoding="ascii") as file:
        for command in LINKED.findall(file.read()):
            for library in re.findall(r"\bhmmjit_\w+", command):
                yield f"{path}: links {library}, which is not installed"


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = sys.argv[1]
    violations, counts = [], {}
    for top in ("engine", "cache", "tools"):
        for path in files_of(root, top, (".cpp", ".hpp", ".h")):
            here = folder_of(path)
            if here is None:
                continue
            counts[top] = counts.get(top, 0) + 1
            if here not in ALLOWED:
                violations.append(f"{path}: folder '{here}' has no place in the dependency rule")
            else:
                violations += check_folder(root, path, here)
    for example in sorted(os.listdir(os.path.join(root, "examples"))):
        top = os.path.join("examples", example)
        tests = os.path.join(top, "tests") + os.sep
        for path in files_of(root, top, (".c", ".cpp", ".hpp", ".h", "CMakeLists.txt")):
            if path.startswith(tests):
                continue
            counts["examples"] = counts.get("examples", 0) + 1
            violations += check_example_build(root, path) if path.endswith("CMakeLists.txt") \
                else check_example(root, path, top)
    for line in violations:
        print(line)
    print(", ".join(f"{top}: {count} files" for top, count in counts.items()), f"{len(violations)} violations",
          sep="; ")
    return 1 if violations or len(counts) != 4 else 0


if __name__ == "__main__":
    sys.exit(main())
