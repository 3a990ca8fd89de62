#!/usr/bin/env python3
"""The program and the library need no newer C library than glibc 2.34 (docs/building.md).

usage: c_library_test.py FILE...

std::random_device is refused by name: linked statically, it needs glibc 2.36, which cannot be seen while libstdc++ is shared.
Skipped with a newer C library than Debian 12's: its headers ask for symbols of its own (__isoc23_sscanf).
"""
import os
import re
import subprocess
import sys

NEWEST = (2, 34)
REFUSED = ("std::random_device", "arc4random")


def main():
    files = sys.argv[1:]
    built_with = os.confstr("CS_GNU_LIBC_VERSION")
    if tuple(map(int, built_with.split()[1].split("."))) > (2, 36):
        print(f"SKIPPED: {built_with} is newer than Debian 12's")
        return 77
    for path in files:
        symbols = subprocess.run(["objdump", "-T", "-C", path], check=True, capture_output=True, text=True).stdout
        wanted = [line for line in symbols.splitlines() if "*UND*" in line]
        versions = {tuple(map(int, found.split("."))) for line in wanted for found in re.findall(r"\(GLIBC_([0-9.]+)\)", line)}
        if not versions:
            sys.exit(f"{path} asks for no symbol of the C library?")
        for line in wanted:
            found = re.search(r"\(GLIBC_([0-9.]+)\)", line)
            if found and tuple(map(int, found[1].split("."))) > NEWEST or any(name in line for name in REFUSED):
                sys.exit(f"{path} asks for {line.split('*UND*')[1].strip()}")
        print(f"{path}: glibc {'.'.join(map(str, max(versions)))}")
    return 0 if files else 2


if __name__ == "__main__":
    sys.exit(main())
