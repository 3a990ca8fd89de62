#!/usr/bin/env bash
# The README's commands on a machine where nothing is installed: makes a minimal Debian 12 root with
# debootstrap, copies this tree into it without build folders, and runs tools/demo.sh there (with
# --test: tools/test.sh as well). Needs root, the package debootstrap, a network and 4 GB of disk.
#
# usage: tools/fresh_root.sh [--test] [--keep] FOLDER
#
# FOLDER must not exist, or be one that --keep left behind; it is removed at the end unless --keep is
# given. $DEBIAN_MIRROR names another mirror than http://deb.debian.org/debian; http_proxy is used
# where it is set. Nothing outside FOLDER changes: the mounts live in a namespace of their own.
set -euo pipefail

usage() {
  sed -n 's/^# usage: /usage: /p' "$0" >&2
  exit 2
}
commands=(tools/demo.sh)
keep=no
folder=
for argument in "$@"; do
  case $argument in
    --test) commands+=(tools/test.sh) ;;
    --keep) keep=yes ;;
    -*) usage ;;
    *) [ -z "$folder" ] || usage; folder=$argument ;;
  esac
done
[ -n "$folder" ] || usage
[ "$(id -u)" = 0 ] || { echo "fresh_root.sh: must run as root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh_root.sh: install the package debootstrap" >&2; exit 2; }
source_folder=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
mark=.hmmjit_fresh_root

if [ -e "$folder" ] && [ ! -e "$folder/$mark" ]; then
  echo "fresh_root.sh: $folder exists and was not made by this script" >&2
  exit 2
fi
if [ ! -e "$folder" ]; then
  mkdir -p "$folder"
  touch "$folder/$mark"
fi
folder=$(cd "$folder" && pwd)
finish() {
  if [ "$keep" = yes ]; then
    echo "kept: $folder"
  else
    rm -rf --one-file-system "$folder"
  fi
}
trap finish EXIT

SECONDS=0
# An unfinished root has a folder debootstrap.
if [ -e "$folder/debootstrap" ] || [ ! -e "$folder/etc/debian_version" ]; then
  debootstrap --variant=minbase bookworm "$folder" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
    >"$folder/debootstrap.log" 2>&1 || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
  echo "fresh_root.sh: root ready after $SECONDS s"
fi
cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
echo "127.0.0.1 localhost $(uname -n)" >"$folder/etc/hosts"
rm -rf "$folder/hmmjit"
mkdir "$folder/hmmjit"
tar -C "$source_folder" --exclude=./build --exclude=./.git --exclude=./shared -cf - . | tar -C "$folder/hmmjit" -xf -

for command in "${commands[@]}"; do
  SECONDS=0
  status=0
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      ${http_proxy:+http_proxy="$http_proxy"} chroot "$1" "/hmmjit/$2"' fresh_root "$folder" "$command" || status=$?
  echo "fresh_root.sh: $command: exit status $status after $SECONDS s"
  [ "$status" = 0 ] || exit "$status"
done
