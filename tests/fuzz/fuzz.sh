#!/usr/bin/env bash
# Builds the fuzz targets with Clang and libFuzzer, under the address and undefined-behaviour sanitizers, and
# runs each for some time from the files of its corpus, one on each processor; prints runs and edges of each.
#   tests/fuzz/fuzz.sh [--seconds N] [--build-only] [TARGET...]     N per target, 60 unless given
# Findings stay in build/fuzz/findings; a target reproduces a finding given as its argument. Inputs that reach new edges
# stay in build/fuzz/corpus. Exit status: 0; 1 after a finding; 77 without a suitable Clang.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/../.."
seconds=60 build_only=0 targets=()
while (($#)); do
  case "$1" in
    --seconds) seconds=$2; shift ;;
    --build-only) build_only=1 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
compiler=
for name in clang++-19 clang++; do
  # The library of the compiler's C++ has std::expected since C++23; older Clangs do not find it.
  if command -v "$name" >/dev/null &&
    echo '#include <expected>
          extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return *std::expected<int, int>(0); }' |
    "$name" -std=c++23 -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null; then
    compiler=$name
    break
  fi
done
if [ -z "$compiler" ]; then
  echo "SKIPPED: no Clang with libFuzzer and std::expected (tools/install_packages.sh --clang)"
  exit 77
fi
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
((${#targets[@]})) || for file in tests/fuzz/*_fuzz.cpp; do
  name=${file##*/}
  targets+=("${name%_fuzz.cpp}")
done
cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"
((build_only)) && exit 0
mkdir -p build/fuzz/findings
# One program on each processor.
run_one() {
  mkdir -p "build/fuzz/corpus/$1"
  local corpora=("build/fuzz/corpus/$1")
  [ -d "tests/fuzz/corpus/$1" ] && corpora+=("tests/fuzz/corpus/$1")
  "build/fuzz/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -max_len=20000 \
    -artifact_prefix="build/fuzz/findings/$1-" "${corpora[@]}" >"build/fuzz/$1.log" 2>&1 || touch "build/fuzz/$1.found"
}
for target in "${targets[@]}"; do
  rm -f "build/fuzz/$target.found"
  while (($(jobs -pr | wc -l) >= $(nproc))); do wait -n; done
  run_one "$target" &
done
wait
failed=0
for target in "${targets[@]}"; do
  log=build/fuzz/$target.log
  if [ -e "build/fuzz/$target.found" ]; then
    echo "$target: FOUND, see $log and build/fuzz/findings"
    failed=1
  fi
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
  runs=$(grep -o 'Done [0-9]* runs' "$log" | tail -1 || true)
  echo "$target: ${runs:-no end}, ${edges:-cov: 0} edges"
done
exit $failed
