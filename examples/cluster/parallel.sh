#!/bin/bash
# Without a scheduler: runs JOBS parts at a time on this machine, by GNU parallel or xargs.
#
#   PARTS=64 MODELS=Pfam-A.h3m TARGETS=proteins.hjdb OPTIONS=--cut_ga ./parallel.sh
set -eu
: "${PARTS:?}" "${MODELS:?}" "${TARGETS:?}"
FOLDER=${FOLDER:-parts}
RESULTS=${RESULTS:-results}
HMMJIT=${HMMJIT:-hmmjit}
JOBS=${JOBS:-4}
mkdir -p "$FOLDER" "$RESULTS"
# shellcheck disable=SC2206  # OPTIONS are words
search=("$HMMJIT" search --quiet --cpu "${CPUS:-1}" --part "{}/$PARTS"
        --part-file "$FOLDER/{}.hjpart" ${OPTIONS:-} "$MODELS" "$TARGETS")
if command -v parallel >/dev/null; then
  parallel --will-cite -q -j "$JOBS" "${search[@]}" ::: $(seq "$PARTS")
else
  seq "$PARTS" | xargs -P "$JOBS" -I '{}' "${search[@]}"
fi
"$HMMJIT" merge -o "$RESULTS/report.txt" --tblout "$RESULTS/targets.tbl" \
  --domtblout "$RESULTS/domains.tbl" "$FOLDER"
