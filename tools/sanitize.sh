#!/usr/bin/env bash
# Builds with sanitizers and runs the tests that gain most from them: readers of files, output files and
# memory under the address and undefined-behaviour sanitizers; worker threads and whole small searches under the thread
# sanitizer. Only the libraries these tests need are compiled.
#   tools/sanitize.sh [--short] [address] [undefined] [thread]     some of them; address and thread unless named,
#            since `address` looks for undefined behaviour as well. `undefined` is what works where the address
#            sanitizer does not
#   --short: of the thread sanitizer's tests only those of worker threads and the work board, 80 CPU seconds
#            from nothing; continuous integration runs `--short thread`
#   CXX=clang++-19 tools/sanitize.sh         with another compiler, in folders of its own
# Exit status: 0; 1 where a test failed or a sanitizer found something.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
short=0
[ "${1:-}" != --short ] || { short=1; shift; }
(($#)) || set -- address thread
for kind in "$@"; do
  case "$kind" in
    address | undefined | thread) ;;
    *) echo "usage: $0 [--short] [address] [undefined] [thread]" >&2; exit 2 ;;
  esac
done
compiler=${CXX:-c++}
suffix=
[ "$compiler" = c++ ] || suffix=-$(basename "$compiler")

# build PRESET TARGET...: says where the programs are.
build() {
  local preset=$1 folder=build/$1$suffix
  shift
  cmake --preset "$preset" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
  cmake --build "$folder" --target "$@"
}

# run FOLDER PROGRAM FILTER: a GoogleTest program of a folder.
failed=0
start=() # of the command line
run() {
  local program
  program=$(find "$1/tests" -type f -name "$2" -perm -u+x)
  echo "---- $program $3"
  local begun=$SECONDS
  "${start[@]}" "$program" --gtest_brief=1 --gtest_filter="$3" || failed=1
  echo "---- $((SECONDS - begun)) s"
}

for kind in "$@"; do
  case "$kind" in
    address | undefined)
      preset=asan
      [ "$kind" = address ] || preset=ubsan
      export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
      export UBSAN_OPTIONS=print_stacktrace=1
      readers=(fuzz_hmm_file fuzz_fasta fuzz_sequence_formats fuzz_byte_source fuzz_blast_database fuzz_target_database)
      build "$preset" test_core test_io "${readers[@]}"
      run "build/$preset$suffix" test_core '*'
      run "build/$preset$suffix" test_io '*'
      for reader in "${readers[@]}"; do
        echo "---- $reader over its corpus"
        "build/$preset$suffix/tests/fuzz/$reader" -n 1000 "tests/fuzz/corpus/${reader#fuzz_}" || failed=1
      done
      ;;
    thread)
      export TSAN_OPTIONS=halt_on_error=1
      programs=(test_work test_workers)
      ((short)) || programs+=(test_search)
      build tsan "${programs[@]}"
      # Where the kernel places programs more at random than the sanitizer's runtime can do with, they run without it.
      first=$(find "build/tsan$suffix/tests" -type f -name "${programs[0]}" -perm -u+x)
      if [[ $("$first" --gtest_list_tests 2>&1 || true) == *'unexpected memory mapping'* ]]; then
        if ! setarch -R "$first" --gtest_list_tests >/dev/null 2>&1; then
          echo "---- skipped: the thread sanitizer does not run on this kernel (see vm.mmap_rnd_bits)"
          continue
        fi
        start=(setarch -R)
      fi
      for program in "${programs[@]}"; do
        run "build/tsan$suffix" "$program" '*'
      done
      start=()
      ;;
  esac
done
exit "$failed"
