#!/usr/bin/env python3
"""Checks that includes follow the one-way dependency rule of ARCHITECTURE.md.

usage: check_layering.py SOURCE_DIR

Reads the #include lines of every C++ file under engine/, cache/ and tools/ and fails on an
include of a folder that the including folder may not know, on CUDA headers outside the two
files that may mention them, and on third-party types in public headers. Exits 1 with one line
for each violation.
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
    "plan": {"model", "core"},
    "render": {"plan", "model", "core"},
    "compile": {"render", "plan", "cache", "model", "core"},
    "driver": {"compile", "render", "plan", "core"},
    "gpu": {"layout", "driver", "compile", "render", "plan", "cache", "reference", "model", "core"},
    "bench": {"gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain", "cpu",
              "reference", "model", "core"},
    "search": {"gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain", "cpu", "reference",
               "io", "model", "core"},
    "report": {"search", "domain", "model", "core"},
    "api": {"report", "search", "gpu", "layout", "driver", "compile", "render", "plan", "cache", "domain",
            "cpu", "reference", "io", "model", "core"},
}
CUDA_HEADERS = {"cuda.h", "nvrtc.h", "cuda_runtime.h"}
CUDA_OWNERS = ("engine/compile/nvrtc_", "engine/driver/cuda_")
PUBLIC_HEADERS = "engine/api/include/"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    parts = path.split(os.sep)
    if parts[0] == "cache":
        return "cache"
    if parts[0] == "engine" and len(parts) > 2:
        return parts[1]
    return None


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = sys.argv[1]
    violations, files = [], 0
    for top in ("engine", "cache"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if not name.endswith((".cpp", ".hpp", ".h")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                here = folder_of(path)
                if here is None or here == "include":
                    continue
                files += 1
                if here not in ALLOWED:
                    violations.append(f"{path}: folder '{here}' has no place in the dependency rule")
                    continue
                for number, line in enumerate(open(os.path.join(root, path), encoding="ascii"), 1):
                    match = INCLUDE.match(line)
                    if not match:
                        continue
                    target = match.group(2)
                    if target in CUDA_HEADERS and not path.startswith(CUDA_OWNERS):
                        violations.append(f"{path}:{number}: CUDA header {target} outside its owner")
                    if path.startswith(PUBLIC_HEADERS) and not (
                            match.group(1) == '"' and target.startswith("hmmjit/")
                            or match.group(1) == "<" and (re.fullmatch("[a-z_]+", target)
                                                          or target in ("stddef.h", "stdint.h"))):
                        violations.append(f"{path}:{number}: public headers include only the standard library")
                    first = target.split("/")[0]
                    if match.group(1) == '"' and first in ALLOWED and first != here \
                            and first not in ALLOWED[here]:
                        violations.append(f"{path}:{number}: {here} must not include {first}")
    for line in violations:
        print(line)
    print(f"{files} files checked, {len(violations)} violations")
    return 1 if violations or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
