#!/usr/bin/env python3
"""Lists the classes of engine/search, engine/work and engine/gpu: methods, locks, file.

usage: class_sizes.py SOURCE_DIR

A method is a declaration of a function in a class: constructors and the destructor count together as one, what is
deleted or defaulted does not count. A lock is a member of type Mutex or std::mutex. Exits 1 where a class of the
running search (engine/search, engine/gpu) has more than MOST_METHODS methods, so that none becomes what all others
have to know.
"""
import glob
import os
import re
import sys

FOLDERS = ("engine/search", "engine/work", "engine/gpu")
BOUNDED = ("engine/search", "engine/gpu")
MOST_METHODS = 16
CLASS = re.compile(r"\b(?<!enum )(class|struct)\s+(?:HMMJIT_\w+(?:\([^)]*\))?\s+)?(\w+)(?:\s+final)?\s*(?::[^{;]*)?\{")
LOCK = re.compile(r"\b(?:Mutex|std::mutex|std::shared_mutex)\s+\w+(?:\s+\w+\([^)]*\))?$")


def without_comments(text):
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def body(text, at):
    """From after an opening brace to its closing one."""
    depth, start = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def declarations(text):
    """Of a class's body: what stands between semicolons, without bodies and nested classes."""
    out, depth, parentheses, at = "", 0, 0, 0
    for at, letter in enumerate(text):
        parentheses += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            # A body ends a function, not a member with a value in braces.
            if depth == 0 and not text[at + 1:].lstrip().startswith((";", ",", ")")):
                out += ";"
        elif depth == 0:
            out += letter if parentheses == 0 or letter != ";" else ","
    return [" ".join(one.split()) for one in re.sub(r"\b(public|private|protected)\s*:", "", out).split(";")]


def method(declaration, name):
    """The name of the method declared; "" for another declaration."""
    if re.search(r"=\s*(delete|default)$", declaration) or declaration.startswith(("friend", "using", "static_assert")):
        return ""
    plain = re.sub(r"\b(HMMJIT_\w+|alignas|decltype|noexcept)\([^()]*(?:\([^()]*\)[^()]*)*\)", "", declaration)
    # Arguments of templates, as of std::function<void()>, are no parameters.
    plain, before = plain.replace("operator<=>", "operator_order").replace("->", ""), ""
    while plain != before:
        plain, before = re.sub(r"<[^<>]*>", "", plain), plain
    found = re.match(r"(?:[^(=]*?)(~?\w+|operator\s*\S+)\s*\(", plain)
    if not found or "=" in plain[:found.start(1)]:
        return ""
    return "constructors and destructor" if found.group(1).lstrip("~") == name else found.group(1)


def classes(text):
    """Name, methods and number of locks of each class, nested ones for themselves."""
    for found in CLASS.finditer(text):
        inside = body(text, found.end())
        methods, locks, ends = [], 0, set()
        for declaration in declarations(inside):
            name = method(declaration, found.group(2))
            if name == "constructors and destructor":
                ends.add(name)
            elif name:
                methods.append(name)
            else:
                locks += bool(LOCK.search(re.sub(r"^mutable ", "", declaration)))
        yield found.group(2), len(methods) + len(ends), locks


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    rows, status = [], 0
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(sys.argv[1], folder, "*.hpp"))):
            with open(path, encoding="ascii") as file:
                text = without_comments(file.read())
            rows += [(methods, locks, name, folder, os.path.basename(path)) for name, methods, locks in classes(text)]
    if not rows:
        print("there are no classes: is this the source folder?")
        return 1
    for methods, locks, name, folder, file in sorted(rows, key=lambda row: (-row[0], row[2])):
        if methods or locks:
            print(f"{methods:3} methods  {locks} locks  {name}  {folder}/{file}")
        if folder in BOUNDED and methods > MOST_METHODS:
            print(f"{folder}/{file}: {name} has {methods} methods, more than {MOST_METHODS}: give it fewer duties")
            status = 1
    print(f"{len(rows)} types, {sum(row[1] for row in rows)} locks")
    return status


if __name__ == "__main__":
    sys.exit(main())
