#!/usr/bin/env python3
"""Makes the Debian packages, installs them and uses their contents.

usage: package_test.py BUILD_DIR WORK_DIR MODELS TARGETS
"""
import glob
import gzip
import os
import shutil
import subprocess
import sys


def output(*command, **keywords):
    return subprocess.run(command, check=True, capture_output=True, text=True, **keywords).stdout


def unpacked(path, work):
    with gzip.open(path, "rb") as source, open(os.path.join(work, "changelog"), "wb") as sink:
        sink.write(source.read())
    return sink.name


def check_policy(packages, build):
    """Errors and warnings of lintian fail; tools/packaging/README.md lists its hints.
    Only packages of a build for /usr have Debian's folder for libraries (multiarch), which lintian asks for."""
    if shutil.which("lintian") is None:
        print("NOT CHECKED WITH LINTIAN: it is not installed (tools/install_packages.sh --documents)")
        return
    # lintian refuses to run as root without this option.
    own = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["lintian", "--tag-display-limit", "0", "--fail-on", "error,warning", *own, *packages],
                          capture_output=True, text=True)
    tags = [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")]
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        if "CMAKE_INSTALL_PREFIX:PATH=/usr\n" not in cache.read():
            tags = [tag for tag in tags if "pkg-config-unavailable-for-cross-compilation" not in tag]
    if tags or done.returncode not in (0, 2):
        sys.exit("lintian: " + "\n".join(tags) + done.stderr)
    print(f"lintian: no error and no warning of {len(packages)} packages")


def main():
    if len(sys.argv) != 5:
        print(__doc__)
        return 2
    build, work, models, targets = sys.argv[1:]
    if not all(shutil.which(tool) for tool in ("dpkg-deb", "dpkg-shlibdeps", "dpkg-parsechangelog")):
        print("SKIPPED: dpkg-deb, dpkg-shlibdeps and dpkg-parsechangelog are not installed (package dpkg-dev)")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    # The fastest compression: these packages are only looked at. Their modes do not depend on the umask.
    output("cpack", "-G", "DEB", "-B", work, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=build, umask=0o077)
    root = os.path.join(work, "root")
    fields = {}
    for package in glob.glob(os.path.join(work, "*.deb")):
        name = output("dpkg-deb", "-f", package, "Package").strip()
        fields[name] = output("dpkg-deb", "-f", package, "Depends")
        output("dpkg-deb", "-x", package, root)
        closed = [line for line in output("dpkg-deb", "-c", package).splitlines() if "r-x" not in line[7:10] and line[0] == "d"]
        if closed:
            sys.exit(f"{name} has folders that not all may read:\n" + "\n".join(closed))
    print("packages:", ", ".join(sorted(fields)))
    check_policy(glob.glob(os.path.join(work, "*.deb")), build)
    library = next(n for n in fields if n.startswith("libhmmjit") and n != "libhmmjit-dev")
    if set(fields) - {"hmmjit-kernels"} != {"hmmjit", library, "libhmmjit-dev", "python3-hmmjit", "hmmjit-doc"}:
        sys.exit("other packages than expected")
    documents = os.path.join(root, "usr", "share", "doc")
    for name in fields:
        with open(os.path.join(documents, name, "copyright"), encoding="utf-8") as file:
            text = file.read()
        if not text.startswith("Format: ") or "Redistribution and use" not in text:
            sys.exit(f"{name}: no licence in its copyright file")
        history = output("dpkg-parsechangelog", "-l", unpacked(os.path.join(documents, name, "changelog.gz"), work))
        if "Source: hmmjit\n" not in history or "Maintainer: " not in history:
            sys.exit(f"{name}: unusable changelog:\n{history}")
    if not os.path.exists(os.path.join(documents, "hmmjit", "docs", "guide.md")):
        sys.exit("no documents in hmmjit-doc")
    for name in ("hmmjit", library):
        if "libzstd" not in fields[name] or "libc6" not in fields[name]:
            sys.exit(f"{name} does not say which libraries it needs: {fields[name]}")
    for name in ("libhmmjit-dev", "python3-hmmjit"):
        if library not in fields[name]:
            sys.exit(f"{name} does not depend on {library}")
    program = os.path.join(root, "usr", "bin", "hmmjit")
    table = os.path.join(work, "hits")
    output(program, "search", "--quiet", "--device", "cpu", "-o", os.devnull, "--tblout", table, models, targets)
    hits = [line for line in open(table, encoding="ascii") if not line.startswith("#")]
    print(len(hits), "hits")
    return 0 if hits else 1


if __name__ == "__main__":
    sys.exit(main())
