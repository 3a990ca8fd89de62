#!/usr/bin/env bash
# Clang's lock analysis (-Wthread-safety) of the folders whose types are annotated with core/mutex.hpp: guarded data is
# accessed only under its mutex. Generates no code; takes about 30 CPU seconds.
#   check.sh SOURCE_TREE
# Exit status: 0; 1 where a lock is missing; 77 without a Clang that reads this C++ (19 or later).
set -euo pipefail
tree=$1
folders=(cache engine/compile engine/search engine/gpu engine/nucleotide engine/work)

clang=
for name in ${HMMJIT_CLANG:-} clang++-21 clang++-20 clang++-19 clang++; do
  major=$("$name" -dumpversion 2>/dev/null | cut -d. -f1) || continue
  if [ "${major:-0}" -ge 19 ]; then clang=$name && break; fi
done
if [ -z "$clang" ]; then
  echo "skipped: the analysis of locks needs Clang 19 or later (tools/install_packages.sh --clang)"
  exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check=("$clang" -std=c++23 -I"$tree/engine" -I"$tree" -I"$tree/kernel_templates" -Wno-everything -Wthread-safety
       -Werror -fpch-instantiate-templates)

# Headers that nearly all files include, parsed once with the templates that they instantiate.
cat >"$scratch/common.hpp" <<'END'
#include <fmt/format.h>
#include "gpu/gpu_filters.hpp"
#include "search/search.hpp"
END
"${check[@]}" -x c++-header "$scratch/common.hpp" -o "$scratch/common.pch"
check+=(-include-pch "$scratch/common.pch" -fsyntax-only)

# The analysis must find a missing lock.
cat >"$scratch/wrong.cpp" <<'END'
#include "core/mutex.hpp"
struct Guarded {
  hmmjit::Mutex mutex;
  int value HMMJIT_GUARDED_BY(mutex) = 0;
};
int read(Guarded& guarded) { return guarded.value; }
END
if "${check[@]}" "$scratch/wrong.cpp" 2>/dev/null; then
  echo "$clang does not see a missing lock" >&2
  exit 1
fi

files=("$tree/engine/core/task_pool.cpp")
for folder in "${folders[@]}"; do files+=("$tree/$folder"/*.cpp); done
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P 2 "${check[@]}" || exit 1
echo "$clang: ${#files[@]} files of ${folders[*]}"
