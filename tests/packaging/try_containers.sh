#!/usr/bin/env bash
# Builds the images of tools/packaging/containers in a Debian 12 of debootstrap, without a registry, and tries them:
# searches and a server must give hmmsearch's bytes, and the CUDA image must find its kernels without a compiler. Needs root, a
# network, the packages buildah, curl, debootstrap, hmmer and hmmer-examples, and 40 minutes on two cores.
#
# usage: try_containers.sh FOLDER [DOCKERFILE...]
#
# The image of Debian, localhost/bookworm, is made in FOLDER unless there is one. A GPU is not used.
set -euo pipefail
[ $# -gt 0 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- Dockerfile Dockerfile.cuda
CDPATH='' cd "$(dirname "$0")/../.."
buildah() { command buildah --storage-driver vfs "$@"; }

if ! buildah inspect --type image localhost/bookworm >"$folder/log" 2>&1; then
  debootstrap --variant=minbase bookworm "$folder/root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$folder/log"
  mkdir -p "$folder/root/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$folder/root/usr/local/share/ca-certificates" \;
  rm -rf "$folder/root/var/cache/apt" "$folder/root/var/lib/apt/lists"/*
  printf 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n' >"$folder/root/etc/apt/apt.conf.d/docker-clean"
  base=$(buildah from scratch)
  buildah add -q "$base" "$folder/root" /
  buildah commit -q "$base" localhost/bookworm
  buildah rm "$base"
fi

data=$folder/data
mkdir -p "$data"
chmod 1777 "$data"
examples=/usr/share/doc/hmmer/examples/tutorial
cat "$examples"/{globins4,fn3,Pkinase}.hmm >"$data/models.hmm"
cp "$examples/globins45.fa" "$data/targets.fa"
hmmemit -N 300 --seed 1 "$data/models.hmm" >>"$data/targets.fa"
hmmsearch -o "$data/want.out" --tblout "$data/want.tbl" --domtblout "$data/want.dom" "$data/models.hmm" "$data/targets.fa"

same() { # FILE: the lines of results are hmmsearch's
  cmp <(sed '/^#/d' "$data/want.${1##*.}") <(sed '/^#/d' "$data/$1")
}
for file in "$@"; do
  image=localhost/hmmjit-$(tr 'A-Z.' 'a-z-' <<<"$file")
  SECONDS=0
  buildah bud --layers --isolation chroot --network host --build-arg BASE=localhost/bookworm \
    -f "tools/packaging/containers/$file" -t "$image" . >"$folder/$file.log" 2>&1
  echo "$file: built in $SECONDS s"
  container=$(buildah from "$image")
  user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
  inside() {
    buildah run --isolation chroot --network host --user "$user" -v "$data:/data" "$container" -- "$@"
  }
  [ "$(inside id -u)" != 0 ]
  rm -f "$data"/{got,served}.* "$data"/socket
  inside hmmjit --version --verbose
  inside hmmjit search --quiet -o got.out --tblout got.tbl --domtblout got.dom models.hmm targets.fa
  inside sh -c 'echo $$ >server; exec hmmjit serve --db targets=targets.fa --socket socket' >"$folder/serve.log" 2>&1 &
  timeout 60 bash -c "until [ -S '$data/socket' ]; do sleep 0.1; done"
  curl -sS --unix-socket "$data/socket" --data-binary "@$data/models.hmm" \
    'http://localhost/v1/search?db=targets&output=tblout' >"$data/served.tbl"
  inside hmmjit search --quiet --server socket -o served.out --domtblout served.dom models.hmm targets
  kill "$(cat "$data/server")"
  wait
  for kind in out tbl dom; do
    same "got.$kind"
    same "served.$kind"
  done
  echo "$file: as hmmsearch, $(wc -l <"$data/want.out") lines of reports, alone and through a server"
  if [ "$file" = Dockerfile.cuda ]; then
    inside env HMMJIT_NVRTC_DIR=/nowhere hmmjit plan --model models.hmm --device H100 >"$data/plan"
    grep -q ', cached' "$data/plan"
    if grep 'not cached' "$data/plan"; then exit 1; fi
    tail -n 1 "$data/plan"
    inside hmmjit cache warm --target sm_87 --length 100 --stage ssv  # an architecture of which no kernels are shipped
  fi
  buildah rm "$container"
done
buildah images
