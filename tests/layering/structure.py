#!/usr/bin/env python3
"""Checks the coupling of classes and headers.

usage: structure.py SOURCE_DIR [--update]

* A class knows at most four collaborators: classes of the tree that one of its constructors takes, or that its members
  refer to, by reference or by pointer. Structs, which are data, do not count.
* A friend is declared in the file that grants the friendship.
* Headers of one folder include each other at most six deep.
* A type at namespace level is defined once: two types of one name make programs in which the linker keeps the destructor
  of one for both. Types of an unnamed namespace do not count.

What breaks a rule today is listed in structure.txt, with its number. The list may only get shorter: the test fails where
a number is exceeded or a new entry would be needed, and --update lowers numbers and removes entries, but adds none.
"""
import functools
import os
import re
import sys

MOST = {"collaborators": 4, "friends": 0, "depth": 6, "definitions": 1}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
TYPE = re.compile(r"\b(?<!enum )(class|struct)\s+(?:HMMJIT_\w+(?:\([^)]*\))?\s+)?(\w+)(?:\s+final)?\s*(?::[^{;()]*)?\{")
KNOWN = re.compile(r"(?:^|[\s<:(])(\w+)(?:\s+const)?\s*(?:[&*]|>+\s*(?:&&?|\s)\s*\w+\s*$)")


def sources(root):
    for top in ("engine", "cache", "tools"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".hpp", ".cpp", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, root), file.read()


def closing(text, at):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1
    return len(text)


def split(parameters):
    """Parameters, divided at the commas outside brackets."""
    out, depth = [""], 0
    for letter in parameters:
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            out.append("")
        else:
            out[-1] += letter
    return out


def collaborators(name, body, classes):
    """The most classes that a constructor takes, or that the members refer to."""
    def known(declarations):
        found = (KNOWN.search(" ".join(one.partition("=")[0].split())) for one in declarations)
        return sum(bool(one) and one.group(1) in classes and one.group(1) != name for one in found)

    most = 0
    for found in re.finditer(rf"(?<![\w~:.>])(?:explicit\s+)?{name}\s*\(", body):
        most = max(most, known(split(body[found.end():closing(body, found.end() - 1) - 1])))
    plain, at = "", 0
    while (brace := body.find("{", at)) >= 0:
        plain, at = plain + body[at:brace] + ";", closing(body, brace)
    members = [m for m in (plain + body[at:]).split(";") if "(" not in re.sub(r"HMMJIT_\w+\([^)]*\)", "", m)]
    return max(most, known(re.sub(r"HMMJIT_\w+\([^)]*\)", "", m) + " " for m in members))


def depths(texts):
    """By folder, the longest chain of its headers of which each includes the next."""
    included = {}
    for path, text in texts.items():
        names = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
        folder = os.path.dirname(path)
        inside = {os.path.join(folder, os.path.basename(name)) for name in names
                  if os.path.dirname(name) in ("", os.path.basename(folder))}
        included[path] = {name for name in inside if name in texts}

    @functools.cache
    def depth(path):
        return 1 + max((depth(name) for name in included[path] if name != path), default=0)

    out = {}
    for path in texts:
        if path.endswith((".hpp", ".h")):
            out[os.path.dirname(path)] = max(out.get(os.path.dirname(path), 0), depth(path))
    return out


def defined(text):
    """The qualified names of the types that a file defines at namespace level, where nothing is indented."""
    spaces = []
    for line in text.splitlines():
        if begun := re.match(r"(?:inline )?namespace\b ?([\w:]*) ?\{", line):
            spaces.append(begun.group(1))
        elif re.match(r"\}\s*// namespace", line):
            spaces.pop()
        elif all(spaces) and (found := TYPE.match(line)) and not line.startswith("::", found.end(2)):
            yield "::".join([*spaces, found.group(2)])


def measure(root):
    """(rule, what) -> number, for everything that exceeds its rule's limit."""
    raw = dict(sources(root))
    texts = {path: COMMENT_OR_STRING.sub(lambda m: '""' if m.group().startswith('"') else "", text)
             for path, text in raw.items()}
    types = [(path, text, found) for path, text in texts.items() for found in TYPE.finditer(text)]
    classes = {found.group(2) for _, _, found in types if found.group(1) == "class"}
    out = {}
    for path, text, found in types:
        body = text[found.end():closing(text, found.end() - 1) - 1]
        key = ("collaborators", f"{os.path.dirname(path)}:{found.group(2)}")
        out[key] = max(out.get(key, 0), collaborators(found.group(2), body, classes))
    for path, text in texts.items():
        own = {found.group(2) for _, _, found in types if _ is text}
        own |= set(re.findall(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^{;()]*)?\{", text))
        for friend in re.findall(r"\bfriend\s+(?:class|struct)\s+([\w:]+);", text):
            if friend.split("::")[-1] not in own:
                out[("friends", f"{path}:{friend}")] = 1
    for path, text in raw.items():
        for name in defined(text):
            out[("definitions", name)] = out.get(("definitions", name), 0) + 1
    out.update({("depth", folder): number for folder, number in depths(raw).items()})
    return {key: number for key, number in out.items() if number > MOST[key[0]]}, len(classes)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else ""
    if not os.path.isdir(os.path.join(root, "engine")):
        print(__doc__)
        return 2
    list_path = os.path.join(root, "tests", "layering", "structure.txt")
    with open(list_path, encoding="ascii") as file:
        lines = file.read().splitlines()
    listed = {tuple(line.split()[:2]): int(line.split()[2]) for line in lines if line and not line.startswith("#")}
    found, classes = measure(root)
    if "--update" in sys.argv:
        kept = [line for line in lines if line.startswith("#")]
        kept += [f"{rule} {what} {min(number, listed[rule, what])}"
                 for (rule, what), number in sorted(found.items()) if (rule, what) in listed]
        with open(list_path, "w", encoding="ascii") as file:
            file.write("\n".join(kept) + "\n")
    status = 0
    for (rule, what), number in sorted(found.items()):
        if number > listed.get((rule, what), MOST[rule]):
            print(f"{what}: {rule} {number}, at most {listed.get((rule, what), MOST[rule])}")
            status = 1
    gone = sum(found.get(key, 0) < number for key, number in listed.items())
    print(f"{classes} classes, {len(found)} exceptions, {len(listed)} listed, {gone} of them no longer needed or lower")
    return status if classes else 1


if __name__ == "__main__":
    sys.exit(main())
