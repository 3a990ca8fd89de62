#!/usr/bin/env bash
# Installs packages, builds the release preset, which users run, and runs every test. Prints the last
# lines of failed tests at the end.
# --arm64: builds for 64-bit ARM as well, and runs the tests of that build alone.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
if [ "${1:-}" = --arm64 ]; then
  tools/install_packages.sh --arm64
  cmake --preset arm64
  cmake --build --preset arm64
  cmake --preset release
  cmake --build --preset release --target hmmjit
  exec ctest --preset release -L '^arm64$' --output-on-failure --no-tests=error
elif (($#)); then
  echo "usage: $0 [--arm64]" >&2
  exit 2
fi
tools/install_packages.sh
cmake --preset release
begun=$SECONDS
cmake --build --preset release
echo "---- build: $((SECONDS - begun)) s"
results=$PWD/build/release/test_results.xml
status=0
# One more than there are processors: some tests wait, for a browser or for Slurm.
ctest --preset release -j "$(($(nproc) + 1))" --output-junit "$results" || status=$?
if [ "$status" != 0 ]; then
  python3 - "$results" <<'PYTHON'
import sys
import xml.etree.ElementTree
for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    if case.find("failure") is not None:
        lines = (case.findtext("system-out") or "").strip().split("\n")
        print(f"\n---- {case.get('name')} failed after {float(case.get('time')):.1f} s; it printed at last:")
        print("\n".join(line[:500] for line in lines[-30:]))
PYTHON
fi
exit "$status"
