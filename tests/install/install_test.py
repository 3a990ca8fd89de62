#!/usr/bin/env python3
"""Tests of `cmake --install`, each in a prefix with blanks that was moved afterwards.

usage: install_test.py install BUILD_DIR PREFIX
       install_test.py project PREFIX SOURCE_DIR WORK_DIR KIND PROGRAM... -- ARGUMENTS...
       install_test.py subproject HMMJIT_SOURCE_DIR SOURCE_DIR WORK_DIR
       install_test.py folders HMMJIT_SOURCE_DIR WORK_DIR
       install_test.py refusals PREFIX WORK_DIR
       install_test.py pkg-config PREFIX SOURCE_DIR WORK_DIR PACKAGE ARGUMENTS...

install: installs into another folder and moves that to PREFIX. subproject: configures a project that
adds hmmjit's folder and links hmmjit::hmmjit, and asks what its programs would be linked with. project: configures and builds a
CMake project against PREFIX and runs its programs with the arguments; their output must match
$HMMJIT_TEST_EXPECTED, if given. pkg-config: compiles
SOURCE_DIR/main.cpp by hand and runs it. folders: what CMake and pkg-config read names the folders that the builder chose.
refusals: what cannot work is said in the first error.
"""
import glob
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
    # The list of what the folder's user has installed elsewhere, by which the README uninstalls, stays.
    manifest = os.path.join(build, "install_manifest.txt")
    if os.path.exists(manifest):
        os.rename(manifest, manifest + ".kept")
    run(["cmake", "--install", build, "--prefix", staging], stdout=subprocess.DEVNULL)
    os.remove(manifest)
    if os.path.exists(manifest + ".kept"):
        os.rename(manifest + ".kept", manifest)
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
    if not os.access(os.path.join(prefix, "share/doc/hmmjit/examples/cluster/parallel.sh"), os.X_OK):
        sys.exit("a script of the examples cannot be run")
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
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            if ("CMAKE_BUILD_TYPE:STRING=Release\n" in cache.read()) != ("BUILD_TYPE" in option):
                sys.exit(f"{option}: the host has another build type than it asked for")
        # The host installs nothing, and hmmjit, which is not built here, nothing of its own.
        run(["cmake", "--install", build, "--prefix", os.path.join(work, "prefix")], stdout=subprocess.DEVNULL)


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


def folders(hmmjit, work):
    shutil.rmtree(work, ignore_errors=True)
    run(["cmake", "-S", hmmjit, "-B", work, "-G", "Ninja", "-DCMAKE_INSTALL_LIBDIR=/opt/own/lib",
         "-DCMAKE_INSTALL_INCLUDEDIR=headers"], stdout=subprocess.DEVNULL)
    for pattern, wanted in (("package/*.pc", "libdir=/opt/own/lib\nincludedir=${prefix}/headers\n"),
                            ("CMakeFiles/Export/*/hmmjit-*.cmake", '"${_IMPORT_PREFIX}/headers"')):
        texts = [open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(work, pattern))]
        if sum(wanted in text for text in texts) < 2:
            sys.exit(f"{pattern}: no {wanted} for both libraries")


REFUSED = """cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES CXX)
find_package(hmmjit {request})
"""


def refusals(prefix, work):
    """A component that does not exist, a library that is not here and a dialect that is too old are named in the message.
    What is not REQUIRED ends no configuration."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    no_zstd = dict(os.environ, PKG_CONFIG_LIBDIR=work)
    for request, fails, message, settings in (
            ("REQUIRED COMPONENTS bogus", True, "no component bogus here; there are: shared static", None),
            ("COMPONENTS static", False, "the static library needs libzstd", no_zstd)):
        with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(REFUSED.format(request=request))
        done = subprocess.run(["cmake", "-S", work, "-B", os.path.join(work, "build"), "-G", "Ninja",
                               "-DCMAKE_PREFIX_PATH=" + prefix], capture_output=True, text=True, env=settings)
        if (done.returncode != 0) != fails or message not in " ".join(done.stderr.split()):
            sys.exit(f"find_package(hmmjit {request}) said:\n{done.stderr}")
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
    elif len(sys.argv) == 4 and sys.argv[1] == "folders":
        folders(*sys.argv[2:])
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
