"""`python -m hmmjit` runs the program hmmjit that is installed with the package."""
import os
import sys
from typing import NoReturn


def program() -> str:
    """The path of the program: inside the package of a wheel, else next to the interpreter or in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(here, "bin", "hmmjit")
    if os.path.exists(inside):
        return inside
    # Installed by CMake: <prefix>/lib/python3/dist-packages/hmmjit and <prefix>/bin.
    prefix = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(here))))
    for folder in [os.path.join(prefix, "bin")] + os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "hmmjit")
        # Skips the script that called this module.
        if os.access(path, os.X_OK) and not os.path.samefile(path, sys.argv[0] or os.curdir):
            return path
    sys.exit("hmmjit: the program is not installed next to the Python package; install both")


def main() -> NoReturn:
    path = program()
    os.execv(path, [sys.argv[0] or "hmmjit", *sys.argv[1:]])  # a link's name selects a program of HMMER


if __name__ == "__main__":
    main()
