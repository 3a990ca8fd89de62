#!/usr/bin/env python3
"""Runs pytest on the Python package, or says why not.

usage: run_pytest.py PACKAGE_FOLDER LIBRARY TEST_FILE [PYTEST_ARGUMENTS...]

Takes the first interpreter that has pytest: this one, then the system's. LIBRARY "-": the package
must find it by itself.
"""
import os
import subprocess
import sys


def main():
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    package, library, tests = sys.argv[1:4]
    environment = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    environment.pop("HMMJIT_LIBRARY", None)
    if library != "-":
        environment["HMMJIT_LIBRARY"] = library
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0:
            return subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", tests]
                                  + sys.argv[4:], env=environment).returncode
    print("SKIPPED: no Python with pytest on this machine (package python3-pytest)")
    return 77


if __name__ == "__main__":
    sys.exit(main())
