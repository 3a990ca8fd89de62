#!/usr/bin/env python3
"""Checks that includes follow the one-way dependency rule of ARCHITECTURE.md.

usage: check_layering.py SOURCE_DIR

Reads the table of folders in ARCHITECTURE.md, the #include lines of every C++ file under engine/, cache/ and
tools/ and the libraries that their CMakeLists.txt link. Fails on an include of a folder that the including
folder may not know, on a folder that the table lets another know without need, on CUDA headers outside the two
files that may mention them, on anything but the standard library in public headers, on streams and folder
iterators of the C++ library, which do not say that memory ran out, on JSON documents in the library, and on a file or a type that ARCHITECTURE.md
names and that does not exist. Examples are
hosts: their programs (not their tests) may include public headers, their own and other libraries', and
link hmmjit::hmmjit alone. Exits 1 with one line for each violation.
"""
import glob
import os
import re
import sys

ROW = re.compile(r"^\| `(?:engine/)?([a-z_]+)(?:/[a-z]+)?` \|.*\| ([^|]+) \|$", re.MULTILINE)
NOT_CPP = {"kernel_templates", "examples"}  # rows of folders that have their own rules
CUDA_HEADERS = {"cuda.h", "nvrtc.h", "cuda_runtime.h"}
CUDA_OWNERS = ("engine/compile/nvrtc_", "engine/driver/cuda_")
PUBLIC_HEADERS = "engine/api/include/"
PUBLIC_FOLDER = PUBLIC_HEADERS + "hmmjit"
# Only the program uses documents of nlohmann::json (engine/core/json_object.hpp says why). This file reads JSON without them.
JSON_READER = "engine/plan/tuning.cpp"
# These report a failed allocation as a missing file or its end.
STREAMS = ("fstream", "sstream", "iostream", "istream", "ostream")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LINKED = re.compile(r"(?:target_link_libraries|hmmjit_library)\((?:[^()]|\([^()]*\))*\)")


def read(root, path):
    with open(os.path.join(root, path), encoding="ascii") as file:
        return file.read()


def read_rule(text):
    """From ARCHITECTURE.md: what each folder's row names, and what the folder may include."""
    named, alone = {}, set()
    for folder, column in ROW.findall(text):
        if folder in NOT_CPP:
            continue
        names = column.removesuffix(" only")
        if names != column:
            alone.add(folder)
        named[folder] = set() if names == "-" else set(names.split(", "))

    def reached(folder, above=()):
        if folder in above:
            raise ValueError(f"the rule of ARCHITECTURE.md has a circle at '{folder}'")
        if folder not in named:
            raise ValueError(f"the rule of ARCHITECTURE.md names '{folder}', which has no row")
        return named[folder].union(*(reached(other, (*above, folder)) for other in named[folder]))

    return named, {folder: named[folder] if folder in alone else reached(folder) for folder in named}


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


def check_folder(root, path, here, allowed, included):
    """Yields violations, and adds the folders that this one includes to `included`."""
    for number, line in enumerate(read(root, path).split("\n"), 1):
        if "directory_iterator" in line:
            yield f"{path}:{number}: an iterator of std::filesystem; folders are read with core/folder.hpp"
    public = set(os.listdir(os.path.join(root, PUBLIC_FOLDER)))
    for number, bracket, target in includes_of(root, path):
        first, _, rest = target.partition("/")
        if target in STREAMS:
            yield f"{path}:{number}: <{target}>; files are read with core/read_only_file.hpp"
        if first == "nlohmann" and path.startswith("engine/") and path != JSON_READER:
            yield f"{path}:{number}: <{target}>; the library writes JSON with core/json_object.hpp"
        if target in CUDA_HEADERS and not path.startswith(CUDA_OWNERS):
            yield f"{path}:{number}: CUDA header {target} outside its owner"
        if path.startswith(PUBLIC_HEADERS) and not (
                bracket == '"' and first == "hmmjit"
                or bracket == "<" and (re.fullmatch("[a-z_]+", target) or target in ("stddef.h", "stdint.h"))):
            yield f"{path}:{number}: public headers include only the standard library"
        if bracket == '"' and first in allowed and first != here:
            included.add(first)
            if first not in allowed[here]:
                yield f"{path}:{number}: {here} must not include {first}"
        if first == "hmmjit" and (here not in ("api", "tools") or here == "api" and rest not in public):
            yield f"{path}:{number}: {here} must not include {target}"


def check_build(root, path, here, allowed):
    for command in LINKED.findall(read(root, path)):
        for library in re.findall(r"\bhmmjit_([a-z]+)\b", command):
            if library in allowed and library != here and library not in allowed[here]:
                yield f"{path}: {here} must not link hmmjit_{library}"


def check_example(root, path, top, allowed):
    """Yields the includes of an example that an installed library does not provide."""
    public = set(os.listdir(os.path.join(root, PUBLIC_FOLDER)))
    for number, bracket, target in includes_of(root, path):
        first, _, rest = target.partition("/")
        if first == "hmmjit":
            if rest not in public:
                yield f"{path}:{number}: {target} is no public header"
        elif first in allowed and "/" in target or target in CUDA_HEADERS:
            yield f"{path}:{number}: examples include public headers only, not {target}"
        elif bracket == '"' and not any(os.path.exists(os.path.join(root, top, folder, target))
                                        for folder in (".", "source", "kernels")):
            yield f"{path}:{number}: {target} is not the example's own"


def check_example_build(root, path):
    for command in LINKED.findall(read(root, path)):
        for library in re.findall(r"\bhmmjit_\w+", command):
            yield f"{path}: links {library}, which is not installed"


def check_walk(root, text):
    """Files and types named in ARCHITECTURE.md that do not exist."""
    for path in sorted(set(re.findall(r"[a-z_]+/[a-z_]*(?:_\*)?\.(?:\*|[ch]pp)", text))):
        if not any(glob.glob(os.path.join(root, top, path)) for top in ("", "engine")):
            yield f"ARCHITECTURE.md: there is no {path}"
    headers = "".join(read(root, path) for path in files_of(root, "engine", ".hpp"))
    declared = set(re.findall(r"\b(?:class|struct|using) (\w+)", headers))
    walk = text[text.index("## A search while it runs"):]
    for name in sorted(set(re.findall(r"\b[A-Z][a-z]\w*", walk.split("```")[1])) - declared):
        yield f"ARCHITECTURE.md: no header has a type {name}"


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = sys.argv[1]
    try:
        named, allowed = read_rule(read(root, "ARCHITECTURE.md"))
    except ValueError as error:
        print(error)
        return 1
    violations, counts, included = [], {}, {}
    for top in ("engine", "cache", "tools"):
        for path in files_of(root, top, (".cpp", ".hpp", ".h", "CMakeLists.txt")):
            here = folder_of(path)
            if here is None:
                continue
            if here not in allowed:
                violations.append(f"{path}: folder '{here}' has no row in ARCHITECTURE.md")
            elif path.endswith("CMakeLists.txt"):
                violations += check_build(root, path, here, allowed)
            else:
                counts[top] = counts.get(top, 0) + 1
                violations += check_folder(root, path, here, allowed, included.setdefault(here, set()))
    for here, names in named.items():
        for other in sorted(names - included.get(here, set())):
            violations.append(f"ARCHITECTURE.md: {here} is said to include {other}, and does not")
    violations += check_walk(root, read(root, "ARCHITECTURE.md"))
    for example in sorted(os.listdir(os.path.join(root, "examples"))):
        top = os.path.join("examples", example)
        tests = os.path.join(top, "tests") + os.sep
        for path in files_of(root, top, (".c", ".cpp", ".hpp", ".h", "CMakeLists.txt")):
            if path.startswith(tests):
                continue
            counts["examples"] = counts.get("examples", 0) + 1
            violations += check_example_build(root, path) if path.endswith("CMakeLists.txt") \
                else check_example(root, path, top, allowed)
    for line in violations:
        print(line)
    print(", ".join(f"{top}: {count} files" for top, count in counts.items()), f"{len(violations)} violations",
          sep="; ")
    return 1 if violations or len(counts) != 4 else 0


if __name__ == "__main__":
    sys.exit(main())
