#!/usr/bin/env python3
"""Compares the C interface with its committed description.

usage: check_abi.py HEADER LIBRARY GOLDEN COMPILER [--update]

The description has every declaration of the header without comments, functions with the version of
their symbol in the shared library, and size, alignment and member offsets of every struct, as a C
compiler lays them out. It differs: exits 1 with the difference. What was published may only be added
to, by functions, by members at the end of a struct, by numbers at the end of an enum: --update
refuses to drop or change anything else of an earlier description unless --break is given as well.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile


def exported_symbols(library):
    """Symbol to version."""
    listing = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                             check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listing.splitlines()]
    return dict(name.replace("@@", "@").split("@") for name in names if name.startswith("hmmjit_") and "@" in name)


def function_of(declaration):
    """The name of the function that is declared, or None."""
    match = re.search(r"\b(hmmjit_\w+)\(", declaration)
    return match[1] if match and "typedef" not in declaration else None


def declarations(header):
    text = open(header, encoding="ascii").read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = text.replace('extern "C" {', "")
    out, depth, current = [], 0, ""
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:  # the end of extern "C"
            depth = 0
            continue
        current += character
        if character == ";" and depth == 0:
            out.append(one_by_one(" ".join(current.split())))
            current = ""
    return out


def one_by_one(declaration):
    """A struct with a declaration for each member: 'int a, b;' and 'int a; int b;' are the same."""
    match = re.match(r"(typedef struct \w+ \{)(.*)(\} \w+;)$", declaration)
    if not match:
        return declaration
    members = []
    for member in match.group(2).split(";"):
        kind = re.match(r"((?:const )?\w+ )(.*)$", member.strip())
        if kind and "(" not in member:
            members += [kind.group(1) + name.strip() for name in kind.group(2).split(",")]
        elif member.strip():
            members.append(member.strip())
    return f"{match.group(1)} {'; '.join(members)}; {match.group(3)}"


def structs(header_declarations):
    """Name to members, in order; from declarations such as 'typedef struct x { int a, b; } x;'."""
    found = {}
    for text in header_declarations:
        match = re.match(r"typedef struct (\w+) \{(.*)\} (\w+);$", text)
        if not match:
            continue
        members = []
        for part in match.group(2).split(";"):
            part = part.strip()
            if not part:
                continue
            pointer = re.search(r"\(\*(\w+)\)\(", part)
            if pointer:
                members.append(pointer.group(1))
                continue
            for name in part.split(","):
                members.append(re.search(r"(\w+)\s*(\[\w+\])?$", name.strip()).group(1))
        found[match.group(1)] = members
    return found


def layout(header, found, compiler):
    lines = ["#include <stdio.h>", f'#include "{os.path.abspath(header)}"', "int main(void) {"]
    for name, members in found.items():
        lines.append(f'  printf("layout {name} size %zu align %zu\\n", sizeof({name}), _Alignof({name}));')
        for member in members:
            lines.append(f'  printf("layout {name}.{member} offset %zu size %zu\\n", '
                         f"offsetof({name}, {member}), sizeof((({name} *)0)->{member}));")
    lines += ["  return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([compiler, "-std=c11", "-Wall", "-Werror", "-o", program, source], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def has_grown(line, now):
    """True if `now` has a line that begins with this line of the description."""
    declaration = re.match(r"(declaration (?:typedef struct \w+|enum) \{ .*?),? (\}.*;)$", line)
    if declaration:
        return any(other.startswith(declaration.group(1)) and other.rstrip("\n").endswith(" " + declaration.group(2))
                   and other[len(declaration.group(1))] in " ," for other in now)
    size = re.match(r"layout (\w+) size (\d+) align (\d+)$", line)
    if size:
        for other in now:
            later = re.match(rf"layout {size.group(1)} size (\d+) align {size.group(3)}$", other)
            if later:
                return int(later.group(1)) >= int(size.group(2))
    return False


def main():
    flags = {a for a in sys.argv[1:] if a.startswith("--")}
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 4 or flags - {"--update", "--break"}:
        print(__doc__)
        return 2
    header, library, golden, compiler = arguments
    declared = declarations(header)
    symbols = exported_symbols(library)
    found = structs(declared)
    functions = {function_of(d) for d in declared} - {None}
    if functions != set(symbols):
        print("declared, not exported:", sorted(functions - set(symbols)))
        print("exported, not declared:", sorted(set(symbols) - functions))
        return 1
    now = [f"declaration {symbols.get(function_of(d), '')} {d}".replace("  ", " ") for d in declared]
    now = [line + "\n" for line in now + layout(header, found, compiler)]
    for struct, members in found.items():
        if members[0] != "size" and struct not in ("hmmjit_constant", "hmmjit_cutoff", "hmmjit_template",
                                                    "hmmjit_filter_counts"):
            print(f"struct {struct} does not begin with its size")
            return 1

    before = open(golden, encoding="ascii").readlines() if os.path.exists(golden) else []
    if "--update" in flags:
        lost = [line for line in before if line not in now and not has_grown(line, now)]
        if lost and "--break" not in flags:
            print("".join(lost), "these published lines would change; see exports.map", sep="")
            return 1
        with open(golden, "w", encoding="ascii") as file:
            file.writelines(now)
        return 0
    if before != now:
        sys.stdout.writelines(difflib.unified_diff(before, now, "published", "now", n=0))
        print("The C interface differs from its description. Compatible additions: check_abi.py --update.")
        return 1
    print(f"{len(symbols)} symbols, {len(declared)} declarations, {len(found)} structs as published")
    return 0


if __name__ == "__main__":
    sys.exit(main())
