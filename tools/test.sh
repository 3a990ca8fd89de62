#!/usr/bin/env bash
# Installs what is missing, builds the release preset, and runs every test. Release is what users
# run, so it is what is tested.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh
cmake --preset release
cmake --build --preset release
ctest --preset release -j "$(nproc)"
