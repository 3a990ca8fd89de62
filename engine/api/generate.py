#!/usr/bin/env python3
"""Makes bindings from the public C header: hmmjit.h is the one description of the interface.

usage: generate.py SOURCE_DIR [--check]

Reads structs, their members with comments and defaults ("...; default 10"), and functions, and writes
engine/api/defaults.hpp (structs of options with their defaults) and engine/api/python/hmmjit/_interface.py
(ctypes, options, attributes with their documentation). --check: writes nothing, and exits with 1 if a file is out
of date.
"""
import os
import re
import sys
import textwrap

HEADER = "engine/api/include/hmmjit/hmmjit.h"

# Codes of ctypes: see _binding.py.
CODES = {"int32_t": "i", "uint32_t": "u", "int64_t": "l", "uint64_t": "L", "double": "d", "size_t": "z", "float": "f",
         "uint8_t": "b", "void": "v", "const char *": "s"}

# Options of a search in Python: other names, types that are not the default's own, and what "default" means there.
OPTION_NAMES = {"max_sensitivity": "max", "keep_alignments": "alignments", "missing_cutoffs": "cut_missing"}
OPTION_TYPES = {"cutoffs": ("Union[str, Cutoffs, None]", "None"), "missing_cutoffs": ("str", '"error"'), "device": ("str", '"auto"'),
                "memory": ("Union[int, str]", "0"), "vram": ("Union[int, str]", "0"),
                "cache": ("Optional[Cache]", "None"), "first_target": ("Optional[str]", "None"),
                "target_count": ("Optional[int]", "None"), "verify": ("Optional[int]", "None")}
OPTION_DOCS = {"cutoffs": '"gathering", "noise" or "trusted": the models\' own cutoffs in place of these thresholds; or a '
                          "mapping of names or accessions to (score of targets, score of domains), None for no threshold",
               "missing_cutoffs": 'models without `cutoffs`: "error", "skip", or "default" (judged by the thresholds)',
               "device": '"auto" (a GPU where it pays), "cpu", "gpu", or ordinals as in "gpu:0,1"',
               "memory": 'bound in bytes, or "400M", "2G"; 0: half of the free memory',
               "vram": 'bytes of each GPU, or "8G"; 0: nine tenths of its free memory',
               "first_target": "begin at the target of this name", "target_count": "search as many targets at most",
               "verify": "targets per model whose GPU result is checked on the CPU; None: as many as take one "
                         "hundredth of the core-seconds",
               "cache": "of kernels; None: the environment's"}
FLAGS = ("max_sensitivity", "bias_filter", "null2", "keep_alignments")
NO_OPTION = ("size", "reserved", "reserved_too", "gpus", "gpu_count", "cutoff_table", "cutoff_count")

# Attributes of Python's objects: class, struct, members that are no attributes of their own.
RECORDS = (("HitFields", "hmmjit_hit", ("best_domain", "first_domain", "domains")),
           ("DomainFields", "hmmjit_domain", ("hit", "model", "match", "sequence", "posterior", "reference",
                                              "structure")),
           ("AlignmentFields", "hmmjit_domain", None),
           ("ResultFields", "hmmjit_result_info", ("hits", "reported", "included", "domains", "counts")),
           ("ModelFields", "hmmjit_model_info", None))
ALIGNMENT = ("model", "match", "sequence", "posterior", "reference", "structure")
MODEL = ("length", "consensus")
FLAG_MEMBERS = ("reported", "included", "has_alignments", "long_targets", "scan")


def members_of(body):
    """(type, name, array length or "", comment) of each member."""
    out = []
    body = re.sub(r"\s*/\*\s*(.*?)\s*\*/", lambda m: "@" + re.sub(r"\s*\n\s*\*\s*", " ", m[1]) + "@", body, flags=re.S)
    for match in re.finditer(r"([^;@]+);(?:@([^@]*)@)?|@([^@]*)@", body):
        declaration, comment = match[1], match[2] or ""
        if declaration is None:
            continue
        declaration = " ".join(declaration.split())
        function = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", declaration)
        if function:
            out.append(("function", function[2], "", comment))
            continue
        kind, names = re.match(r"((?:const )?\w+(?: \*const \*| \*)?)\s*(.*)$", declaration).groups()
        for name in names.split(","):
            name, _, array = name.strip().partition("[")
            pointer = name.startswith("*")
            out.append((kind + (" *" if pointer and not kind.endswith("*") else ""), name.lstrip("*"),
                        array.rstrip("]"), comment))
    return out


def read_header(text):
    """Structs and functions, by name, in order."""
    structs = {name: members_of(body) for name, body in
               re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S)}
    plain = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    functions = {}
    for result, name, arguments in re.findall(r"^(\w[\w ]*?\s*\*?)\s*\b(hmmjit_\w+)\((.*?)\);", plain,
                                              flags=re.M | re.S):
        functions[name] = (" ".join(result.split()), split_arguments(" ".join(arguments.split())))
    return structs, functions


def split_arguments(text):
    out, depth, current = [], 0, ""
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            out.append(current.strip())
            current = ""
        else:
            current += c
    return [a for a in [*out, current.strip()] if a != "void"]


def code_of(kind):
    """How ctypes passes it: a letter, or "p" for pointers."""
    kind = kind.strip()
    return CODES.get(kind, "p" if "*" in kind or kind.startswith("function") else kind)


def argument_code(argument):
    if "(*" in argument:
        return "p"
    kind, name = re.match(r"(.*?)(\w+)$", argument).groups()
    return code_of(re.sub(r"\s*\*", " *", kind.strip()))


def function_code(result, arguments):
    """Codes of result and arguments; result "e": a status, with an error object as last argument."""
    if arguments and arguments[-1] == "hmmjit_error **error":
        return "e" + "".join(argument_code(a) for a in arguments[:-1])
    return code_of(re.sub(r" ?\*", " *", result)) + "".join(argument_code(a) for a in arguments)


def default_of(comment):
    match = re.search(r"(?:^|; )default ([^\s:;]+)", comment)
    return match and match[1]


def sentence(comment):
    text = re.sub(r"; default .*", "", comment)
    text = text.replace("NULL", "None").replace("NaN", "None")
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".") if text else ""


def options(structs):
    """(C name, Python name, type, default, documentation) of each option of a search."""
    for kind, name, _, comment in structs["hmmjit_search_options"]:
        if name in NO_OPTION:
            continue
        default = default_of(comment)
        if name in OPTION_TYPES:
            kind, value = OPTION_TYPES[name]
        elif name in FLAGS:
            kind, value = "bool", str(default == "1")
        elif default == "NaN" or name in ("Z", "domZ"):
            kind, value = "Optional[float]", "None"
        else:
            kind, value = ("float", repr(float(default))) if kind == "double" else ("int", default)
        yield name, OPTION_NAMES.get(name, name), kind, value, OPTION_DOCS.get(name) or re.sub(
            r"; default .*", "", comment)


def filled(text, first, width=118, further=None):
    """Words in lines that begin with `first` and `further`; "\\xa0" stands for a blank within a word."""
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=further or first, break_long_words=False,
                         break_on_hyphens=False).replace("\xa0", " ")


def wrapped(prefix, items, width=118):
    """Items, comma separated, in lines that begin with `prefix`."""
    return filled(", ".join(item.replace(" ", "\xa0") for item in items), prefix, width)


def defaults_header(structs):
    out = ["// Options with the defaults that hmmjit.h tells; made by generate.py, not by hand.", "#pragma once", "",
           "#include <limits>", "", '#include "hmmjit/hmmjit.h"', "", "// clang-format off", "namespace hmmjit_defaults {",
           "inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();"]
    spelled = {"NULL": "nullptr", "NaN": "kNaN", None: "{}"}
    for name, members in structs.items():
        defaults = {member: default_of(comment) for _, member, _, comment in members}
        if any(defaults.values()):
            values = [f".{m} = {spelled.get(d, d)}" for m, d in defaults.items() if m != "size"]
            title = "".join(word.title() for word in name.split("_")[1:])
            out += [f"inline constexpr {name} k{title} = {{",
                    wrapped("  ", [f".size = sizeof({name})", *values], 98) + "};"]
    return "\n".join([*out, "}  // namespace hmmjit_defaults"]) + "\n"


def record_lines(name, members):
    out = []
    for kind, member, _, comment in members:
        if member in ("size", "reserved"):
            continue
        code = CODES.get(kind)
        text = sentence(comment.partition("alignment: ")[2] if name == "AlignmentFields" else comment)
        reader = "bool" if member in FLAG_MEMBERS else {"s": "text", "d": "float"}.get(code, "int")
        attribute = member[6:] if name == "ResultFields" and member.startswith("model_") else member
        out.append(f"    {attribute} = Field({member!r}, {reader}, {text!r})")
    return out


def python(structs, functions):
    out = ['"""The C interface as ctypes needs it, options and attributes; made from hmmjit.h by generate.py."""',
           "from __future__ import annotations", "",
           "from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple, TypedDict, Union", "",
           "from ._fields import Field, Fields, text", "", "if TYPE_CHECKING:",
           "    from ._machine import Cache", "",
           "Cutoffs = Mapping[str, Tuple[Optional[float], Optional[float]]]", "", "# Members of structs as name:code; see _binding.py.",
           "STRUCTS: Dict[str, str] = {"]
    for name, members in structs.items():
        codes = [f"{m}:{'n' + array if array else 'c' if kind == 'function' else code_of(kind)}"
                 for kind, m, array, _ in members]
        out.append(filled(" ".join(codes), f'    {name[7:]!r}: """', 115, "        ") + '""",')
    out += ["}", "", "# Functions as result and arguments, by their codes.", "FUNCTIONS: Dict[str, str] = {"]
    out += [wrapped("    ", [f"{name[7:]!r}: {function_code(*rest)!r}" for name, rest in functions.items()]), "}", ""]
    rows = list(options(structs))
    out += ["", "class SearchOptions(TypedDict, total=False):",
            '    """Options of a search, with hmmsearch\'s names, meaning and defaults; None is the default.', ""]
    for _, name, _, value, doc in rows:
        words = f"{name}: {doc}" + ("" if value in ("None", '"auto"', '"error"') else f"; default {value}")
        out.append(filled(words, "    * ", 116, "      "))
    out += ['    """', ""]
    for _, name, kind, value, _ in rows:
        optional = kind if "Optional[" in kind or ", None]" in kind else f"Optional[{kind}]"
        out.append(f"    {name}: {optional}")
    out += ["", "", "# By their names in Python: the C member and the default.", "OPTIONS: Dict[str, Tuple[str, Any]] = {",
            wrapped("    ", [f"{name!r}: ({member!r}, {value})" for member, name, _, value, _ in rows]), "}"]
    for name, struct, left_out in RECORDS:
        members = structs[struct]
        if left_out is None:
            wanted = ALIGNMENT if name == "AlignmentFields" else MODEL
            members = [m for m in members if m[1] in wanted]
        else:
            members = [m for m in members if m[1] not in left_out]
        out += ["", "", f"class {name}(Fields):", "    __slots__ = ()", *record_lines(name, members)]
    return "\n".join(out) + "\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        print(__doc__)
        return 2
    root = arguments[0]
    with open(os.path.join(root, HEADER), encoding="ascii") as file:
        structs, functions = read_header(file.read())
    differing = 0
    for path, made in (("engine/api/defaults.hpp", defaults_header(structs)),
                       ("engine/api/python/hmmjit/_interface.py", python(structs, functions))):
        full = os.path.join(root, path)
        if "--check" in sys.argv:
            with open(full, encoding="utf-8") as file:
                if file.read() != made:
                    print(f"{path} does not follow from {HEADER}: ninja renew")
                    differing = 1
        else:
            with open(full, "w", encoding="utf-8") as file:
                file.write(made)
    return differing


if __name__ == "__main__":
    sys.exit(main())
