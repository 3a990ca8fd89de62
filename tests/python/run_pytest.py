#!/usr/bin/env python3
"""Runs pytest on the Python package, or prints why it cannot.

usage: run_pytest.py PACKAGE_FOLDER LIBRARY TEST_FILE [PYTEST_ARGUMENTS...]

Takes the first interpreter that has pytest: that of the environment HMMJIT_TEST_READERS, this one, the system's.
LIBRARY "-": the package must find it by itself. Exits with 77 where every test was skipped.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def main():
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    package, library, tests = sys.argv[1:4]
    environment = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    environment.pop("HMMJIT_LIBRARY", None)
    if library != "-":
        environment["HMMJIT_LIBRARY"] = library
    readers = environment.pop("HMMJIT_TEST_READERS", "")
    for python in (os.path.join(readers, "bin", "python3"), sys.executable, "/usr/bin/python3"):
        if not os.access(python, os.X_OK) or \
                subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode != 0:
            continue
        with tempfile.NamedTemporaryFile(suffix=".xml") as summary:
            status = subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                                     "--junitxml", summary.name, tests] + sys.argv[4:], env=environment).returncode
            if status != 0:
                return status
            ran = xml.etree.ElementTree.parse(summary).getroot().find("testsuite")
            return 77 if ran.get("tests") == ran.get("skipped") else 0
    print("SKIPPED: no Python with pytest on this machine (package python3-pytest)")
    return 77


if __name__ == "__main__":
    sys.exit(main())
