#!/usr/bin/env python3
"""Makes the documentation pages: the documents of the tree and the reference of the three interfaces.

usage: make_pages.py SOURCE_DIR LIBRARY OUT_DIR

SOURCE_DIR is the source tree, LIBRARY the built libhmmjit.so, which the Python package loads. The pages appear in
OUT_DIR/html. Doxygen reads the headers, Breathe takes its description into Sphinx, and myst-parser reads Markdown
(Debian: doxygen, python3-sphinx, python3-breathe, python3-myst-parser). Any warning of Doxygen or Sphinx is an error:
exit status 1.
"""
import os
import re
import shutil
import subprocess
import sys

# Copied unchanged to the same paths: the links between them stay valid.
FOLDERS = ("docs", "examples", "kernel_templates", "tools/packaging")
INTERFACE = os.path.join("engine", "api", "include", "hmmjit")
PYTHON = os.path.join("engine", "api", "python")

DOXYFILE = """
PROJECT_NAME = hmmjit
INPUT = "{headers}"
FILE_PATTERNS = {patterns}
OUTPUT_DIRECTORY = "{out}"
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
{language}
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = HMMJIT_EXPORT= HMMJIT_BEGIN_NAMESPACE="namespace hmmjit {{" HMMJIT_END_NAMESPACE="}}" __GNUC__
EXTRACT_ALL = YES
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
AUTOLINK_SUPPORT = NO
"""

# Doxygen ignores the plain comments of the C header. Headings of sections stay comments; a comment at the beginning of a line describes
# what follows it, any other what precedes it.
C_LANGUAGE = """
OPTIMIZE_OUTPUT_FOR_C = YES
TYPEDEF_HIDES_STRUCT = YES
INPUT_FILTER = "sed -e 's|^/[*] -|//-|' -e 's|^/[*] |/** |' -e 's|^  /[*] |  /** |' -e 's|; */[*] |; /**< |' -e 's|  /[*] |  /**< |'"
"""


def version_of(source):
    with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(hmmjit VERSION ([0-9.]+)", file.read()).group(1)


def page(text, where, source):
    """A document of the tree as Sphinx reads it."""
    # Layouts and grammars are of no language that can be highlighted.
    text = re.sub(r"^( *```)data$", r"\1text", text, flags=re.MULTILINE)
    # Badges are images of the repository's host.
    text = re.sub(r"^\[!\[.*\n", "", text, flags=re.MULTILINE)

    def link(match):
        """A folder has no page; its README has. What is no document has none either."""
        target, anchor = match.group(1), match.group(2) or ""
        path = os.path.normpath(os.path.join(where, target))
        if os.path.isdir(os.path.join(source, path)):
            return f"]({target.rstrip('/')}/README.md{anchor})"
        return match.group(0)

    return re.sub(r"\]\(([^)#\s:]+)(#[^)]*)?\)", link, text)


def copy_documents(source, pages):
    def copy(name):
        target = os.path.join(pages, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if name.endswith(".md"):
            with open(os.path.join(source, name), encoding="utf-8") as file:
                text = page(file.read(), os.path.dirname(name), source)
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            shutil.copyfile(os.path.join(source, name), target)

    for name in os.listdir(source):
        if name.endswith((".md", ".cff")):
            copy(name)
    for folder in FOLDERS:
        for where, folders, names in os.walk(os.path.join(source, folder)):
            folders[:] = [f for f in folders if f not in ("sphinx", "tests")]
            for name in names:
                if name.endswith((".md", ".png", ".svg")):
                    copy(os.path.relpath(os.path.join(where, name), source))


def write_reference(source, pages):
    """A page for each language; one section for each header."""
    os.makedirs(os.path.join(pages, "api"))
    headers = sorted(name for name in os.listdir(os.path.join(source, INTERFACE)) if name.endswith(".hpp"))
    headers = [name for name in headers if name not in ("hmmjit.hpp", "export.hpp")]

    def write(name, lines):
        with open(os.path.join(pages, "api", name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def opening(header):
        """The comment that begins a header, which says what holds for everything in it."""
        with open(os.path.join(source, INTERFACE, header), encoding="utf-8") as file:
            lines = file.read().removeprefix("/* clang-format off */\n").split("\n")
        if lines[0].startswith("//"):
            end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
            out = []
            for text in (line[2:] for line in lines[:end]):
                code = text.startswith("   ")  # an example
                if code and not (out and out[-1].startswith("   ")):
                    out += ["", "::", ""]
                elif not code and out and out[-1].startswith("   "):
                    out.append("")
                out.append(text if code else text.strip())
            return "\n".join(out)
        end = next(i for i, line in enumerate(lines) if line.strip() == "*/")
        return "\n".join(["::", ""] + ["   " + line[3:] for line in lines[:end]])

    lines = ["C++", "===", "", opening("hmmjit.hpp"), "", "Headers", "-------", ""]
    for header in headers:
        title = f"hmmjit/{header}"
        lines += [title, "~" * len(title), "", opening(header), ""]
    # One namespace holds everything; Breathe would open it again for each header.
    lines += ["Declarations", "------------", "", ".. doxygennamespace:: hmmjit", "   :project: hmmjit",
              "   :content-only:", "   :members:"]
    write("cpp.rst", lines)
    write("c.rst", ["C", "=", "", opening("hmmjit.h"), "", ".. doxygenfile:: hmmjit.h", "   :project: hmmjit_c"])
    write("python.rst", ["Python", "======", "", ".. automodule:: hmmjit", "   :members:", "   :imported-members:",
                         "   :inherited-members: list, dict, tuple, Exception"])


def run_doxygen(source, out, name, patterns, language):
    folder = os.path.join(out, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "Doxyfile"), "w", encoding="utf-8") as file:
        file.write(DOXYFILE.format(headers=os.path.join(source, INTERFACE), patterns=patterns, out=folder,
                                   language=language))
    subprocess.run(["doxygen", os.path.join(folder, "Doxyfile")], check=True)
    return os.path.join(folder, "xml")


def main():
    if len(sys.argv) != 4:
        print(__doc__)
        return 2
    source, library, out = (os.path.abspath(argument) for argument in sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    pages = os.path.join(out, "source")
    os.makedirs(pages)
    copy_documents(source, pages)
    write_reference(source, pages)
    settings = os.path.join(source, "docs", "sphinx")
    version = version_of(source)
    with open(os.path.join(settings, "index.md"), encoding="utf-8") as file:
        text = file.read().replace("{{version}}", version)
    with open(os.path.join(pages, "index.md"), "w", encoding="utf-8") as file:
        file.write(text)
    try:
        environment = dict(os.environ, HMMJIT_LIBRARY=library, HMMJIT_DOCUMENTED_VERSION=version,
                           HMMJIT_PYTHON_FOLDER=os.path.join(source, PYTHON), PYTHONDONTWRITEBYTECODE="1",
                           HMMJIT_DOXYGEN_XML=run_doxygen(source, out, "doxygen_cpp", "*.hpp", ""),
                           HMMJIT_DOXYGEN_C_XML=run_doxygen(source, out, "doxygen_c", "*.h",
                                                            C_LANGUAGE))
        subprocess.run(["sphinx-build", "-b", "html", "-W", "--keep-going", "-q", "-c", settings, "-d",
                        os.path.join(out, "doctrees"), pages, os.path.join(out, "html")], check=True, env=environment)
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with exit status {error.returncode}")
        return 1
    made = sum(name.endswith(".html") for _, _, names in os.walk(os.path.join(out, "html")) for name in names)
    print(f"{made} pages in {os.path.join(out, 'html')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
