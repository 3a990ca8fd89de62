#!/bin/bash
# Submits an array of parts and the merge that waits for it. Run again, it submits the missing parts.
#
#   PARTS=64 MODELS=Pfam-A.h3m TARGETS=proteins.hjdb OPTIONS=--cut_ga ./submit.sh [sbatch options]
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
: "${PARTS:?}" "${MODELS:?}" "${TARGETS:?}"
export PARTS MODELS TARGETS
FOLDER=${FOLDER:-parts}
tasks=1-$PARTS
if compgen -G "$FOLDER/*.hjpart" >/dev/null; then
  # Exit status 3 with numbers: missing parts; without: a damaged part.
  status=0
  tasks=$("${HMMJIT:-hmmjit}" part missing --array "$FOLDER") || status=$?
  [ "$status" -eq 0 ] || [ -n "$tasks" ] || exit "$status"
fi
# If no part is missing, a task checks that the parts are of this search.
array=$(sbatch --parsable --array="${tasks:-1}" "$@" "$here/search_part.sbatch")
sbatch --parsable --dependency="afterok:$array" "$@" "$here/merge.sbatch"
