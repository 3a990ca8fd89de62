#!/usr/bin/env bash
# Run by conda-build (meta.yaml), which sets PREFIX, SP_DIR and CPU_COUNT.
set -euo pipefail
# conda-forge has CUDA's headers in a folder of the target.
cuda=("$PREFIX"/targets/*)
# conda-build sets CMAKE_ARGS to several words.
# shellcheck disable=SC2086
CUDA_HOME=${cuda[0]} cmake -S . -B build/conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DCMAKE_INSTALL_LIBDIR=lib
cmake --build build/conda --parallel "${CPU_COUNT:-1}"
for component in tools runtime development; do
  cmake --install build/conda --component "$component"
done
# The package finds the library two folders above its own, in lib.
mkdir -p "$SP_DIR"
cp -r engine/api/python/hmmjit "$SP_DIR/"
