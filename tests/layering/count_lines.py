#!/usr/bin/env python3
"""Counts lines of code by folder, of one source tree or of two with their differences.

usage: count_lines.py SOURCE_DIR [SOURCE_DIR]

Counts C++, CUDA, C, Python, shell and CMake files. `code` are lines that hold more than a comment, `all` includes
comments and empty lines. Documentation strings of Python count as code. The product is engine, cache, kernel_templates
and tools.
"""
import os
import sys

PRODUCT = ("engine", "cache", "kernel_templates", "tools")
FOLDERS = (*PRODUCT, "benchmarks", "examples", "tests")
# Each subfolder of these has a row.
DIVIDED = ("engine", "tools")
COMMENTS = {".cpp": "//", ".hpp": "//", ".h": "//", ".c": "//", ".cu": "//", ".cuh": "//",
            ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#"}


def is_counted(path):
    ending = os.path.splitext(path)[1]
    return ending in COMMENTS and (ending != ".txt" or os.path.basename(path) == "CMakeLists.txt")


def count(path):
    """Lines with code, and all lines."""
    mark, code, lines, in_comment = COMMENTS[os.path.splitext(path)[1]], 0, 0, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            lines += 1
            text = line.strip()
            if mark == "//" and (in_comment or text.startswith("/*")):
                in_comment = "*/" not in text
                text = text.partition("*/")[2].strip()
            code += bool(text) and not text.startswith(mark)
    return code, lines


def row_of(path):
    parts = path.split(os.sep)
    return os.sep.join(parts[:2]) if parts[0] in DIVIDED and len(parts) > 2 else parts[0]


def rows(root):
    """(code, all) by folder."""
    out = {}
    for top in FOLDERS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                path = os.path.join(folder, name)
                if not is_counted(path) or os.path.islink(path):
                    continue
                row = row_of(os.path.relpath(path, root))
                before, counted = out.get(row, (0, 0)), count(path)
                out[row] = (before[0] + counted[0], before[1] + counted[1])
    return out


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    trees = [rows(root) for root in sys.argv[1:]]
    if not all(trees):
        print("there is no code: is this a source folder?")
        return 1
    names = sorted(set().union(*trees))
    sums = {"product": [name for name in names if name.split(os.sep)[0] in PRODUCT], "in all": names}
    width = max(len(name) for name in [*names, *sums]) + 2
    print("".ljust(width) + "".join(f"{'code':>8}{'all':>8}  " for _ in trees) + ("    code     all" if len(trees) > 1 else ""))
    for name, parts in [*((name, [name]) for name in names), *sums.items()]:
        values = [[sum(tree.get(part, (0, 0))[i] for part in parts) for i in (0, 1)] for tree in trees]
        more = "".join(f"{b - a:+8}" for a, b in zip(*values)) if len(values) > 1 else ""
        print(name.ljust(width) + "".join(f"{code:8}{lines:8}  " for code, lines in values) + more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
