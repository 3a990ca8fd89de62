#!/usr/bin/env bash
# Installs packages, builds hmmjit and runs real searches: the globin family against its 45 members,
# then three families against 20,000 UniProt sequences. The results are the same with and without a
# GPU.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
tools/install_packages.sh
cmake --preset release
cmake --build --preset release --target hmmjit

hmmjit=build/release/bin/hmmjit
tutorial=/usr/share/doc/hmmer/examples/tutorial
database=/usr/share/doc/mmseqs2/example-data/DB.fasta.gz
work=build/demo
mkdir -p "$work"

echo
echo "== globins4 against globins45.fa"
"$hmmjit" search --noali --tblout "$work/globins45.tbl" "$tutorial/globins4.hmm" "$tutorial/globins45.fa" |
  awk '/^Query:/ { shown = 1 } shown && shown++ <= 12'  # reads on: a closed pipe would end the search

echo
echo "== globins4, fn3 and Pkinase against $(basename "$database")"
cat "$tutorial/globins4.hmm" "$tutorial/fn3.hmm" "$tutorial/Pkinase.hmm" >"$work/three.hmm"
time "$hmmjit" search -o "$work/three.out" --tblout "$work/three.tbl" --domtblout "$work/three.domtbl" \
  "$work/three.hmm" "$database"
grep -v '^#' "$work/three.tbl" | awk '{n[$3]++} END {for (q in n) print q ": " n[q] " proteins"}' | sort
echo "tables: $work/three.tbl $work/three.domtbl, report: $work/three.out"

echo
echo "== what would run on an H200, and why"
"$hmmjit" plan --model "$tutorial/globins4.hmm" --device H200 --stage ssv
