# shellcheck shell=bash
# Functions of test cases (../cases_test.py).
shopt -s extglob

# need COMMAND...: skips the case unless all of these commands exist.
need() {
  local name
  for name; do
    command -v "$name" >/dev/null || { echo "$name is not installed"; return 1; }
  done
}

# model NAME...: copies models of Debian's hmmer-examples.
model() {
  local name
  for name; do
    zcat -f "$EXAMPLES"/@(tutorial|testsuite)/"$name"?(.gz) >"$name" || return
  done
}

# emitted SEED PER_MODEL DECOYS MODEL...: FASTA records with domains from hmmemit, and random ones.
emitted() {
  python3 - "$@" <<'PYTHON'
import os
import sys
sys.path.insert(0, os.environ["SCENARIO"])
import scenario
seed, per_model, decoys = map(int, sys.argv[1:4])
scenario.write_fasta("/dev/stdout", scenario.emitted_targets(sys.argv[4:], seed, per_model, decoys))
PYTHON
}

# fasta [NAME SEQUENCE]...: FASTA records.
fasta() {
  while (($#)); do
    printf '>%s\n%s\n' "$1" "$2"
    shift 2
  done
}

# results FILE...: the lines without comments, which name programs, files and times.
results() { cat "$@" | grep -v '^#' | sed '/./,$!d'; }

# same WANTED GOT: fails and shows the difference unless both have the same results, at least one.
same() {
  [ -n "$(results "$1")" ] || { echo "$1 has no results"; return 1; }
  diff <(results "$1") <(results "$2") >.difference && return
  head -5 .difference
  return 1
}

# both ARGUMENT...: runs hmmsearch and hmmjit search, with output in `want` and `got`, and compares their results.
both() { hmmsearch --cpu 0 "$@" >want && hmmjit search --quiet "$@" >got && same want got; }

# as_other COMMAND...: runs a command as an unprivileged user, who runs nothing else: limits count all processes of a user.
other=$((20000 + $$ % 40000))
as_other() { setpriv --reuid=$other --clear-groups "$@"; }
