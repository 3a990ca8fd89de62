#!/usr/bin/env bash
# Installs each kind of package on a minimal Debian 12: prints the commands, sizes, and the
# seconds until the first hits. Needs root, debootstrap and a network.
#
# usage: tests/install/bare_root.sh ROOT MODELS TARGETS FILE...
#
# ROOT     a minimal Debian 12, created if it does not exist (300 MB); each installation uses an overlay, so it does not change
# FILE     a wheel (.whl), a source distribution (.tar.gz), or the program of a portable build; Debian packages (.deb) are
#          installed together
# $DEBIAN_MIRROR replaces http://deb.debian.org/debian.
set -euo pipefail
[ $# -ge 4 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "bare_root.sh: must run as root" >&2; exit 2; }
root=$1 models=$2 targets=$3
shift 3
# An unfinished root has a folder debootstrap.
if [ -e "$root/debootstrap" ] || [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >/dev/null
fi

# in_layer <what> <commands that prepare> <commands from installing to hits> <files ...>
in_layer() {
  local what=$1 layer status=0
  layer=$(mktemp -d)
  shift
  # shellcheck disable=SC2016 # the inner shell expands it
  LAYER=$layer ROOT=$(realpath "$root") MODELS=$models TARGETS=$targets WHAT=$what \
    unshare --mount bash -euc '
      mount -t tmpfs -o size=6g layer "$LAYER"
      mkdir "$LAYER/upper" "$LAYER/work" "$LAYER/root"
      mount -t overlay -o "lowerdir=$ROOT,upperdir=$LAYER/upper,workdir=$LAYER/work" overlay "$LAYER/root"
      prepare=$1 install=$2
      shift 2
      mkdir "$LAYER/root/way"
      cp "$MODELS" "$LAYER/root/way/models.hmm"
      cp "$TARGETS" "$LAYER/root/way/targets.fasta"
      cp "$@" "$LAYER/root/way/"
      cp -L /etc/resolv.conf "$LAYER/root/etc/resolv.conf"
      # Certificates of a proxy, if this machine has one.
      mkdir -p "$LAYER/root/etc/ssl/certs"
      [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$LAYER/root/etc/ssl/certs/"
      mount -t proc proc "$LAYER/root/proc"
      mount --rbind /dev "$LAYER/root/dev"
      inside() {
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
          PIP_CERT=/etc/ssl/certs/ca-certificates.crt ${http_proxy:+http_proxy="$http_proxy"} \
          ${https_proxy:+https_proxy="$https_proxy"} chroot "$LAYER/root" bash -euo pipefail -c "cd /way; $1"
      }
      echo "== $WHAT ($(cat "$@" | wc -c | awk "{printf \"%.1f MB\", \$1 / 1e6}"))"
      [ -z "$prepare" ] || { echo "$ $prepare"; inside "$prepare" >"$LAYER/log" 2>&1 || { tail -n 20 "$LAYER/log"; exit 1; }; }
      echo "$ $install"
      begun=$(date +%s.%N)
      inside "$install" >"$LAYER/log" 2>&1 || { tail -n 20 "$LAYER/log"; exit 1; }
      echo "$begun $(date +%s.%N)" | awk "{printf \"%.1f s to the first hits\\n\", \$2 - \$1}"
      inside "grep -vc ^# hits.tbl" | sed "s/\$/ lines of hits, of which the first is/"
      inside "grep -v ^# hits.tbl | head -n 1"' bare_root "$@" || status=$?
  rmdir "$layer"
  return $status
}

# All installations use the same names of models and targets.
search="search --quiet -o report.txt --tblout hits.tbl models.hmm targets.fasta"
debs=() files=()
for file in "$@"; do
  case $file in *.deb) debs+=("$file") ;; *) files+=("$file") ;; esac
done
pip="apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null && python3 -m venv venv"
needed="g++ cmake ninja-build pkg-config libfmt-dev libhwy-dev libxxhash-dev libzstd-dev zlib1g-dev nlohmann-json3-dev libboost-dev"
for file in ${files[@]+"${files[@]}"}; do
  name=$(basename "$file")
  case $name in
    *.whl) in_layer wheel "$pip" "venv/bin/pip install -q --no-index ./$name && venv/bin/hmmjit $search" "$file" ;;
    *.tar.gz)
      in_layer "source distribution" "$pip && apt-get install -y -qq --no-install-recommends $needed >/dev/null" \
        "venv/bin/pip install -q ./$name && venv/bin/hmmjit $search" "$file" ;;
    *) in_layer program "" "./$name $search" "$file" ;;
  esac
done
if ((${#debs[@]})); then
  names=$(for file in "${debs[@]}"; do printf ' ./%s' "$(basename "$file")"; done)
  in_layer "Debian packages" "apt-get update -qq" \
    "apt-get install -y -qq --no-install-recommends$names && hmmjit $search" "${debs[@]}"
fi
