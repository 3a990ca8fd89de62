#!/usr/bin/env bash
# Clang accepts the sources without a warning, as its sanitizers and libFuzzer need, and its lock analysis
# (-Wthread-safety) holds where types are annotated with core/mutex.hpp: guarded data is accessed only under its mutex.
#   check.sh SOURCE_TREE
# Compiles all vector code and one file of each folder without locks; analyses all files of those with locks, the fuzz programs
# and the benchmarks, which are built on request only, but not those that passed before with the same headers and Clang.
# Exit status: 0; 1 after a warning or an error; 77 without a Clang that reads this C++ (19 or later).
set -euo pipefail
tree=$1
passed=${CCACHE_DIR:-$PWD}/passed_by_clang  # continuous integration keeps ccache's folder
with_locks=(cache engine/compile engine/search engine/gpu engine/nucleotide engine/work)

clang=
for name in ${HMMJIT_CLANG:-} clang++-21 clang++-20 clang++-19 clang++; do
  major=$("$name" -dumpversion 2>/dev/null | cut -d. -f1) || continue
  if [ "${major:-0}" -ge 19 ]; then clang=$name && break; fi
done
if [ -z "$clang" ]; then
  echo "skipped: needs Clang 19 or later (tools/install_packages.sh --clang)"
  exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# std::stable_sort of GCC 12's library uses a function that C++17 deprecates.
clang=("$clang" -std=c++23 -I"$tree/engine" -I"$tree" -I"$tree/kernel_templates" -I"$tree/engine/api/include"
       -I"$tree/tools" -I"$tree/tests" -DHMMJIT_BUILDING_LIBRARY -DHMMJIT_VERSION='"0"'
       -DHMMJIT_VERSION_{MAJOR,MINOR,PATCH}"=0" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
       -Wno-deprecated-declarations -Wthread-safety -Werror)

# Headers that nearly all files with locks include, parsed once with the templates that they instantiate.
cat >common.hpp <<'END'
#include <fmt/format.h>
#include "gpu/gpu_filters.hpp"
#include "search/search.hpp"
END
"${clang[@]}" -fpch-instantiate-templates -Wno-pragma-once-outside-header -x c++-header common.hpp \
  -o common.pch
analyse=("${clang[@]}" -include-pch common.pch -fsyntax-only)

# The analysis must find a missing lock.
cat >wrong.cpp <<'END'
#include "core/mutex.hpp"
struct Guarded {
  hmmjit::Mutex mutex;
  int value HMMJIT_GUARDED_BY(mutex) = 0;
};
int value(Guarded& guarded) { return guarded.value; }
END
if "${analyse[@]}" wrong.cpp 2>/dev/null; then
  echo "${clang[0]} does not see a missing lock" >&2
  exit 1
fi

analysed=("$tree/engine/core/workers.cpp" "$tree"/tests/fuzz/*_fuzz.cpp "$tree"/benchmarks/*.cpp)
for folder in "${with_locks[@]}"; do analysed+=("$tree/$folder"/*.cpp); done
compiled=("$tree"/engine/{cpu,domain}/*kernels*.cpp)
for folder in "$tree"/engine/*/ "$tree/tools/hmmjit/"; do
  sources=("$folder"*.cpp)
  [[ " ${analysed[*]} " == *" ${sources[0]} "* ]] || compiled+=("${sources[0]}")
done
compile=("${clang[@]}" -O0 -c)
command -v ccache >/dev/null && compile=(env CCACHE_BASEDIR="$tree" ccache "${compile[@]}")
# Each file in a process of its own, two at a time.
printf '%s\0' "${compiled[@]}" | xargs -0 -n 1 -P 2 "${compile[@]}" || exit 1
headers=$({ cat "$0"; "${clang[0]}" --version; cd "$tree" && find benchmarks cache engine kernel_templates tests tools \
  -regex '.*[.]\(h\|hpp\|cu\|cuh\)' -print0 | LC_ALL=C sort -z | xargs -0 tail -n +1; } | sha256sum)
sums=$(cd "$tree" && sha256sum "${analysed[@]#"$tree"/}" | sed "s/^/${headers%% *} /" | LC_ALL=C sort)
mkdir -p "${passed%/*}" && touch "$passed"
LC_ALL=C comm -13 "$passed" - <<<"$sums" | sed "s|.*  |$tree/|" | tr '\n' '\0' | xargs -0 -r -n 1 -P 2 "${analyse[@]}" || exit 1
echo "$sums" >"$passed"
echo "${clang[0]}: ${#compiled[@]} files compiled, ${#analysed[@]} analysed"
