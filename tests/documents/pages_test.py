#!/usr/bin/env python3
"""The documentation pages are made without a warning, and show all three interfaces.

usage: pages_test.py SOURCE_DIR LIBRARY WORK_DIR
"""
import html
import os
import re
import shutil
import subprocess
import sys

TOOLS = ("sphinx-build", "doxygen")
MODULES = ("sphinx", "myst_parser", "breathe")
# Declarations of which the page of each language must show the name and a sentence of the description.
SHOWN = {
    "python.html": ("hmmjit.search_to_files", "writes results to files as they arrive and keeps none", "Bits, of the whole target."),
    "cpp.html": ("merge_parts", "from a separate thread; false cancels the search"),
    "c.html": ("hmmjit_models_from_file", "Appends model", "match states"),
}


def main():
    if len(sys.argv) != 4:
        print(__doc__)
        return 2
    source, library, work = sys.argv[1:]
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    # sphinx-build runs with the interpreter that its first line names, which has the modules.
    if not missing:
        with open(shutil.which("sphinx-build"), encoding="utf-8") as file:
            python = file.readline()[2:].split()
        missing = [m for m in MODULES if subprocess.run(python + ["-c", f"import {m}"], capture_output=True).returncode]
    if missing:
        print(f"SKIPPED, NO PAGES MADE: {', '.join(missing)} not installed (tools/install_packages.sh --documents)")
        return 77
    done = subprocess.run([sys.executable, os.path.join(source, "docs", "sphinx", "make_pages.py"), source, library,
                           work], capture_output=True, text=True)
    print(done.stdout + done.stderr)
    if done.returncode != 0:
        return 1
    if "WARNING" in done.stdout + done.stderr:
        sys.exit("a warning that was not an error")
    for name, wanted in SHOWN.items():
        with open(os.path.join(work, "html", "api", name), encoding="utf-8") as file:
            text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", file.read())))
        for piece in wanted:
            if piece not in text:
                sys.exit(f"api/{name} does not show '{piece}'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
