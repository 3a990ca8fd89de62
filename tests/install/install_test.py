#!/usr/bin/env python3
"""Tests of `cmake --install`, each in a prefix with blanks that was moved afterwards.

usage: install_test.py install BUILD_DIR PREFIX
       install_test.py project PREFIX SOURCE_DIR WORK_DIR KIND PROGRAM... -- ARGUMENTS...
       install_test.py subproject HMMJIT_SOURCE_DIR SOURCE_DIR WORK_DIR
       install_test.py refusals PREFIX WORK_DIR
       install_test.py pkg-config PREFIX SOURCE_DIR WORK_DIR PACKAGE ARGUMENTS...

install: installs into another folder and moves that to PREFIX. subproject: configures a project that
adds hmmjit's folder and links hmmjit::hmmjit, and asks what its programs would be linked with. project: configures and builds a
CMake project against PREFIX and runs its programs with the arguments; their output must match
$HMMJIT_TEST_EXPECTED, if given. pkg-config: compiles
SOURCE_DIR/main.cpp by hand and runs it. refusals: what cannot work is said in the first error.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys


def run(command, **keywords):
    print("+", shlex.join(command), flush=True)
    return subprocess.run(command, check=True, **keywords).stdout


def environment(prefix):
    """An environment that finds the shared library in the prefix."""
    libraries = sorted(folder for folder, _, names in os.walk(os.path.join(prefix, "lib"))
                       if any(n.startswith("libhmmjit.so") for n in names))
    return dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(libraries))


def install(build, prefix):
    staging = prefix + " before moving"
    for folder in (staging, prefix):
        shutil.rmtree(folder, ignore_errors=True)
    run(["cmake", "--install", build, "--prefix", staging], stdout=subprocess.DEVNULL)
    os.rename(staging, prefix)
    for folder, _, names in os.walk(prefix):
        for name in names:
            if not name.endswith((".cmake", ".pc", ".h", ".hpp", ".py")):
                continue
            text = open(os.path.join(folder, name), encoding="utf-8").read()
            for path in (staging, build):
                if path in text:
                    sys.exit(f"{name} names {path}: the prefix cannot be moved")
    for name in ("man/man1/hmmjit.1", "man/man1/hmmjit-search.1",
                 "bash-completion/completions/hmmjit"):
        if os.path.getsize(os.path.join(prefix, "share", name)) == 0:
            sys.exit(f"{name} is empty")
    check_links(os.path.join(prefix, "share", "doc", "hmmjit"))
    run([os.path.join(prefix, "bin", "hmmjit"), "--version"])


def check_links(folder):
    """All targets of links in installed documents are installed."""
    seen = 0
    for where, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".md"):
                continue
            text = open(os.path.join(where, name), encoding="utf-8").read()
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                seen += 1
                if "://" not in link and not os.path.exists(os.path.join(where, link)):
                    sys.exit(f"installed {name}: dead link {link}")
    if seen < 30:
        sys.exit(f"only {seen} links in {folder}")


SUBPROJECT = """cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES CXX)
add_subdirectory("{hmmjit}" hmmjit)
add_executable(consumer "{source}/main.cpp")
target_link_libraries(consumer PRIVATE hmmjit::hmmjit)
"""


def subproject(hmmjit, source, work):
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(SUBPROJECT.format(hmmjit=hmmjit, source=source))
    for kind, option in (("shared", "-DBUILD_SHARED_LIBS=ON"), ("static", "-DBUILD_SHARED_LIBS=OFF"),
                         ("shared", "-DCMAKE_BUILD_TYPE=Release")):
        build = os.path.join(work, option[2:].replace("=", "_"))
        run(["cmake", "-S", work, "-B", build, "-G", "Ninja", option], stdout=subprocess.DEVNULL)
        for target in ("test_core", "mrf"):
            if subprocess.run(["ninja", "-C", build, "-t", "query", target], capture_output=True).returncode == 0:
                sys.exit(f"a host's build has hmmjit's own target {target}")
        inputs = run(["ninja", "-C", build, "-t", "query", "consumer"], stdout=subprocess.PIPE, text=True)
        library = "libhmmjit.so" if kind == "shared" else "libhmmjit.a"
        if library not in inputs:
            sys.exit(f"{option}: consumer is not linked with {library}:\n{inputs}")


def project(prefix, source, work, kind, rest):
    cut = rest.index("--") if "--" in rest else len(rest)
    programs, arguments = rest[:cut], rest[cut + 1:]
    shutil.rmtree(work, ignore_errors=True)
    run(["cmake", "-S", source, "-B", work, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DCMAKE_PREFIX_PATH=" + prefix, "-DHMMJIT_KIND=" + kind], stdout=subprocess.DEVNULL)
    run(["cmake", "--build", work], stdout=subprocess.DEVNULL)
    for program in programs:
        # The build's own search path for the library suffices: the consumer was linked in place.
        expected = os.environ.get("HMMJIT_TEST_EXPECTED")
        output = run([os.path.join(work, program)] + arguments, cwd=work, stdout=subprocess.PIPE, text=True)
        print(output[:2000])
        if expected and not re.search(expected, output, re.S):
            sys.exit(f"{program} did not print {expected}")
        linked = subprocess.run(["ldd", os.path.join(work, program)], check=True, capture_output=True,
                                text=True).stdout
        if ("libhmmjit.so" in linked) != (kind == "shared"):
            sys.exit(f"{program} is not linked with the {kind} library:\n{linked}")


REFUSED = """cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES CXX)
find_package(hmmjit REQUIRED COMPONENTS bogus)
"""


def refusals(prefix, work):
    """A component that does not exist and a dialect that is too old are named in the message."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(REFUSED)
    done = subprocess.run(["cmake", "-S", work, "-B", os.path.join(work, "build"), "-G", "Ninja",
                           "-DCMAKE_PREFIX_PATH=" + prefix], capture_output=True, text=True)
    said = " ".join(done.stderr.split())
    if done.returncode == 0 or "no component bogus here; there are: shared static" not in said:
        sys.exit(f"find_package of a component that does not exist said:\n{done.stderr}")
    folder = next(where for where, _, names in os.walk(prefix) if "hmmjit.hpp" in names)
    headers = sorted(name for name in os.listdir(folder) if name.endswith(".hpp"))
    for name in headers:
        done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", "-Wfatal-errors", "-x", "c++", "-I", os.path.dirname(folder), "-"],
                              input=f"#include <hmmjit/{name}>\n", capture_output=True, text=True)
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "")
        if "need C++20" not in first:
            sys.exit(f"the first error of {name} as C++17 is: {first}")
    print(f"{len(headers)} headers say that they need C++20")


def pkg_config(prefix, source, work, package, arguments):
    os.makedirs(work, exist_ok=True)
    found = [folder for folder, _, names in os.walk(prefix) if "hmmjit.pc" in names]
    settings = dict(os.environ, PKG_CONFIG_PATH=found[0])
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], check=True, env=settings,
                           capture_output=True, text=True).stdout
    program = os.path.join(work, "by_hand")
    run(["c++", "-std=c++20", "-o", program, os.path.join(source, "main.cpp")] + shlex.split(flags))
    run([program] + arguments, env=environment(prefix))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "install":
        install(sys.argv[2], sys.argv[3])
    elif len(sys.argv) > 6 and sys.argv[1] == "project":
        project(*sys.argv[2:6], sys.argv[6:])
    elif len(sys.argv) == 5 and sys.argv[1] == "subproject":
        subproject(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "refusals":
        refusals(*sys.argv[2:])
    elif len(sys.argv) > 5 and sys.argv[1] == "pkg-config":
        pkg_config(*sys.argv[2:6], sys.argv[6:])
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
