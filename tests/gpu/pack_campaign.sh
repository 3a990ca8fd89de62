#!/usr/bin/env bash
# Packs what tests/gpu/random_searches.py needs on a machine that has a GPU and nothing else.
#
# usage: pack_campaign.sh OUT_FOLDER [HMMJIT]
#
# OUT_FOLDER gets the stripped program and hmmsearch with their libraries (all but those of the C and
# C++ run-time systems), the models and proteins of the recorded data ($HMMJIT_SHARED), compressed,
# and campaign.sh, which sets the library path and starts the script:
#
#   OUT_FOLDER/campaign.sh --seconds 420 --seed 1 --log log.jsonl
#   OUT_FOLDER/campaign.sh --orders 10
#
# data/library holds the collections of hmm/lib in one format version (hmmconvert), data/models
# those of the older version as they were and the other models.
set -euo pipefail

if [[ $# -lt 1 || $# -gt 2 ]]; then
  sed -n '2,16s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
out=$1
program=${2:-$here/../../build/release/bin/hmmjit}
data=${HMMJIT_SHARED:?names the folder of the recorded data}/data
mkdir -p "$out/bin" "$out/lib"

strip -o "$out/bin/hmmjit" "$program"
strip -o "$out/bin/hmmsearch" "$(command -v hmmsearch)"
cp "$here/random_searches.py" "$out/"
for binary in "$out/bin/hmmjit" "$out/bin/hmmsearch"; do
  ldd "$binary" |
    awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so/ { print $3 }' |
    while read -r library; do cp -L "$library" "$out/lib/"; done
done

# Model files may follow one another only in one format version.
rm -rf "$out/data"
mkdir -p "$out"/data/{library,models,targets}
for file in "$data"/hmm/lib/*.hmm.gz "$data"/hmm/{cudampf,lengths,hmmer,pyhmmer}/*.hmm*; do
  version=$(zcat -f "$file" | sed -n '1{s/ .*//;s,.*/,,;p;q}' || true)
  name=$(basename "${file%.gz}" .hmm)
  if [[ $file == */hmm/lib/* ]]; then
    zcat -f "$file" | hmmconvert - >"$out/data/library/$name.hmm"
    if [[ $version == b ]]; then zcat -f "$file" >>"$out/data/models/library_b.hmm"; fi
  else
    # shellcheck disable=SC1003 # sed's command to append
    zcat -f "$file" | sed '$a\' >>"$out/data/models/others_$version.hmm"  # one ends without a line feed
  fi
done
for file in "$data"/seq/*.fasta* "$data"/seq/*.faa*; do
  zcat -f "$file" >"$out/data/targets/$(basename "${file%.gz}")"
done
find "$out/data" -type f -print0 | xargs -0 -n 1 -P "$(nproc)" bzip2 -9

cat >"$out/campaign.sh" <<'RUN'
#!/usr/bin/env bash
# The campaign with what was packed beside this file; options are those of random_searches.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PYTHONUNBUFFERED=1
case " $* " in
  *" --orders "*) what=(--library "$here"/data/library/*) ;;
  *) what=(--models "$here"/data/{library,models}/* --oracle "$here/bin/hmmsearch") ;;
esac
exec python3 "$here/random_searches.py" "$here/bin/hmmjit" "${what[@]}" --targets "$here"/data/targets/* "$@"
RUN
chmod +x "$out/campaign.sh"
du -sk "$out"/bin "$out"/lib "$out"/data/*
du -sm "$out" | awk '{ print $1 " MiB in all" }'
