#!/usr/bin/env bash
# Packs what the campaigns of a device need on a machine that has a GPU and Python and nothing else (about 45 MiB).
#
# usage: pack_campaign.sh OUT_FOLDER [BUILD_FOLDER]
#
# OUT_FOLDER gets the stripped program, libhmmjit and hmmsearch with their libraries (all but those of the C and C++
# run-time systems), the Python package, scripts, models and sequences of the recorded data ($HMMJIT_SHARED), and two commands:
#
#   OUT_FOLDER/machines.sh                                              # environments as administrators make them
#   OUT_FOLDER/campaign.sh --programs all --seconds 420 --seed 1 --log log.jsonl
set -euo pipefail

if [[ $# -lt 1 || $# -gt 2 ]]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
tree=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
out=$1
build=${2:-$tree/build/release}
data=${HMMJIT_SHARED:?names the folder of the recorded data}/data
mkdir -p "$out"/{bin,lib,tests/gpu,models,targets}

strip -o "$out/bin/hmmjit" "$build/bin/hmmjit"
strip -o "$out/bin/hmmsearch" "$(command -v hmmsearch)"
strip -o "$out/lib/libhmmjit.so" "$build/engine/api/libhmmjit.so"
for binary in "$out"/bin/* "$out/lib/libhmmjit.so"; do
  ldd "$binary" |
    awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so/ { print $3 }' |
    while read -r library; do cp -L "$library" "$out/lib/"; done
done
cp "$tree"/tests/gpu/*.py "$out/tests/gpu/"
cp -r "$tree/engine/api/python" "$out/package"
cp "$data"/hmm/lib/{pfam_mix,interproscan_pfam_small,short_motifs,tigrfam_mix,tigrfam_mix_3b}.hmm.gz "$out/models/"
cp "$data"/hmm/{cudampf,lengths}/*.hmm* "$data"/dna/hmm/{sine,dfam,MADE1,barrnap_bac,itsx,lambda5500}.hmm.gz "$out/models/"
cp "$data"/seq/{ecoli_k12_mg1655.faa,human_subset.fasta,long_proteins.fasta,swissprot_viruses.faa,archaea_nequitans.faa}.gz \
  "$data"/seq/{archaea_methanoliparales.faa,yeast_scerevisiae.fasta,uniparc_5k.fasta}.gz \
  "$data"/dna/seq/{human_chr20_1Mb,hpylori_G27,ecoli_MG1655,yeast_XII,made1_target}.fa.gz "$out/targets/"
chmod -R u+w "$out"

for name in machines campaign; do
  cat >"$out/$name.sh" <<'RUN'
#!/usr/bin/env bash
# With what was packed beside this file; options are those of device_scenario.py or random_searches.py.
set -euo pipefail
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PYTHONUNBUFFERED=1
RUN
  chmod +x "$out/$name.sh"
done
cat >>"$out/machines.sh" <<'RUN'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
zcat "$here/models/interproscan_pfam_small.hmm.gz" >"$scratch/models.hmm"
zcat "$here/targets/archaea_nequitans.faa.gz" >"$scratch/targets.fasta"
python3 "$here/tests/gpu/device_scenario.py" "$here/bin/hmmjit" "$scratch/models.hmm" "$scratch/targets.fasta" --machines "$@"
RUN
cat >>"$out/campaign.sh" <<'RUN'
exec python3 "$here/tests/gpu/random_searches.py" "$here/bin/hmmjit" --oracle "$here/bin/hmmsearch" --package "$here/package" \
  --shared-library "$here/lib/libhmmjit.so" --models "$here"/models/* --targets "$here"/targets/* "$@"
RUN
du -sm "$out" | awk '{ print $1 " MiB in all" }'
