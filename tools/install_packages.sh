#!/usr/bin/env bash
# Installs the Debian packages that building and testing hmmjit need; does nothing when present.
# --browser: also those of the test of `hmmjit report`'s page in a real browser, 300 MB.
# --clang: also a Clang that can fuzz (tests/fuzz/fuzz.sh), 300 MB.
# --arm64: also what cross-builds for 64-bit ARM and runs the programs here (docs/building.md), 400 MB.
# --documents: also what makes the documentation pages (docs/sphinx) and checks the Debian packages, 300 MB.
set -euo pipefail
packages=(g++ cmake ninja-build ccache pkg-config python3 python3-pytest python3-numpy dpkg-dev file locales
          libfmt-dev libgtest-dev libgmock-dev libhwy-dev libxxhash-dev
          libzstd-dev zlib1g-dev zstd libpng-dev libnifti2-dev libcli11-dev nlohmann-json3-dev hmmer hmmer-examples mmseqs2-examples ncbi-blast+
          slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
for option in "$@"; do
  case "$option" in
    --browser) packages+=(chromium chromium-driver python3-selenium) ;;
    --clang) packages+=(clang-19 libclang-rt-19-dev) ;;
    --arm64)
      dpkg --print-foreign-architectures | grep -qx arm64 || $sudo dpkg --add-architecture arm64
      packages+=(g++-aarch64-linux-gnu qemu-user-static)
      for package in libfmt-dev libgtest-dev libgmock-dev libhwy-dev libxxhash-dev libzstd-dev zlib1g-dev \
                     libpng-dev; do
        packages+=("$package:arm64")
      done ;;
    --documents) packages+=(python3-sphinx python3-myst-parser python3-breathe doxygen lintian) ;;
    *) echo "usage: $0 [--browser] [--clang] [--arm64] [--documents]" >&2; exit 2 ;;
  esac
done
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
