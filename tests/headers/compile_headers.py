#!/usr/bin/env python3
"""Every header of the tree compiles alone: it includes what it uses.

usage: compile_headers.py SOURCE_DIR BUILD_DIR

Compiles a twelfth of all headers, another one in each run, and those that differ from branch main; all with
HMMJIT_HEADERS=all. Without optimization, with the flags of the sources beside the header, of the nearest
ones above it, or of the program. With ccache a header that has not changed takes no time.

Left out are files that are parts of a source by design: names with `-inl.`, which are compiled once
per instruction set, and CUDA headers (.cuh), which NVRTC and the lockstep tests compile; and the
public headers, which the target public_headers compiles as a host would.
"""
import concurrent.futures
import json
import os
import random
import resource
import shlex
import shutil
import subprocess
import sys
import time

FOLDERS = ("engine", "cache", "tools", "tests", "examples", "kernel_templates")
KEPT = ("-I", "-D", "-isystem", "-std", "-W", "-m", "-f")


def headers(source):
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(source, top)):
            if folder.endswith("/api/include/hmmjit"):
                continue
            for name in sorted(names):
                if name.endswith((".h", ".hpp")) and "-inl." not in name:
                    yield os.path.join(folder, name)


def flags_by_folder(commands, source, build):
    """For each folder with C++ sources: the flags of all of them but definitions, each different list of
    definitions, and the folder in which they are compiled."""
    flags, definitions, places = {}, {}, {}
    for entry in commands:
        path = entry["file"]
        if not path.endswith((".cpp", ".cxx")):
            continue
        # Files that include several sources are in the build's folder for their target.
        folder = os.path.dirname(path) if path.endswith(".cpp") else \
            os.path.join(source, os.path.relpath(path.split("/CMakeFiles/")[0], build))
        words = shlex.split(entry["command"])
        own = [(word, words[at + 1]) if word == "-isystem" else (word,) for at, word in enumerate(words)
               if word.startswith(KEPT) and word != "-Winvalid-pch"]
        flags.setdefault(folder, {}).update(dict.fromkeys(f for f in own if not f[0].startswith("-D")))
        definitions.setdefault(folder, {})[tuple(f[0] for f in own if f[0].startswith("-D"))] = None
        places[folder] = entry["directory"]
    return {folder: ([word for flag in flags[folder] for word in flag], list(definitions[folder]), places[folder])
            for folder in flags}


def changed(source):
    """Headers that differ from branch main; none where git does not know it."""
    names = subprocess.run("git diff --name-only --merge-base main", shell=True, cwd=source, capture_output=True, text=True).stdout
    return {os.path.join(source, name) for name in names.split()}


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    source, build = (os.path.realpath(path) for path in sys.argv[1:])
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    known = flags_by_folder(commands, source, build)
    # For headers without a source: everything that the program's main file may include.
    fallback = known[os.path.join(source, "tools", "hmmjit")]
    ccache = ["ccache"] if shutil.which("ccache") else []
    os.environ.setdefault("CCACHE_BASEDIR", source)
    scratch = os.path.join(build, "tests", "headers", "alone")
    os.makedirs(scratch, exist_ok=True)
    empty = os.path.join(scratch, "empty.cpp")
    with open(empty, "w", encoding="ascii"):
        pass

    def compile_alone(header):
        made = os.path.join(scratch, os.path.relpath(header, source).replace(os.sep, "+") + ".o")
        folder = os.path.dirname(header)
        while folder not in known and len(folder) > len(source):
            folder = os.path.dirname(folder)
        flags, definitions, directory = known.get(folder, fallback)
        own = ["-I" + os.path.join(source, "kernel_templates"), "-I" + os.path.join(source, "tests")]
        for defined in definitions:  # of one source or another
            command = [*ccache, "c++", *flags, *own, *defined, "-include", header, "-c", empty, "-o", made]
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
            if done.returncode == 0 and not done.stderr:
                break
        return header, done

    begun, failures, count = time.time(), 0, 0
    everything, share, own_changes = os.environ.get("HMMJIT_HEADERS") == "all", random.randrange(12), changed(source)
    all_headers = list(headers(source))
    to_do = [header for at, header in enumerate(all_headers) if everything or at % 12 == share or header in own_changes]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for header, done in pool.map(compile_alone, to_do):
            count += 1
            if done.returncode != 0 or done.stderr:
                failures += 1
                print(f"{os.path.relpath(header, source)} does not compile alone:\n{done.stderr[:1500]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{count} of {len(all_headers)} headers, {failures} failures; {time.time() - begun:.0f} s, "
          f"{used.ru_utime + used.ru_stime:.0f} core-seconds")
    return 1 if failures or len(all_headers) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
