#!/usr/bin/env bash
# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
#
# Gets everything a build and its tests need, on Debian 12 or 13:
#   - Debian packages, where this runs as root (else it names the missing ones);
#   - build/venv, a Python with the packages that tests and the next step use;
#   - build/deps/onnx, ONNX's C++ library, which Debian has only in a version
#     that is too old. It is compiled once a user and kept in the cache folder.
# Whatever is there already is left alone, so run it as often as you like.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null # nothing here asks questions

debian_packages=(
  g++ cmake ninja-build python3 python3-venv ca-certificates
  libprotobuf-dev protobuf-compiler libabsl-dev libspdlog-dev catch2
  libhwy-dev libcli11-dev nlohmann-json3-dev
  libdnnl-dev ocl-icd-opencl-dev # oneDNN's CMake package looks for OpenCL
  # For tests only, which are skipped without: chromium opens bench's pages.
  chromium valgrind xfsprogs btrfs-progs
)

onnx_version=1.23.2
onnx_sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
python_packages=(
  "onnx==$onnx_version" onnxruntime==1.32.0 numpy==2.4.6
  cmake==3.31.10 # for ONNX alone: it asks for 3.26, Debian 12 has 3.25
)

# Where a clone has it from if another has built the same before.
cache=${XDG_CACHE_HOME:-${HOME:-~}/.cache}/onnx-addnorm
scratch=$cache/unfinished

say() { echo "setup: $*" >&2; }

# quietly COMMAND...: shows the command's output only if it fails.
quietly() {
  local log=$scratch/log
  "$@" >"$log" 2>&1 && return
  tail -n 50 "$log" >&2
  say "failed: $*"
  exit 1
}

# has_key FOLDER KEY: was this folder finished, and for this very key?
has_key() { [[ -f $1/setup-key && $(<"$1/setup-key") == "$2" ]]; }

# install_debian_packages: only those that are missing.
install_debian_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian; install by hand what it calls: ${debian_packages[*]}"
    exit 1
  fi
  local package missing=()
  for package in "${debian_packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>&1) == "installed "* ]] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    say "missing Debian packages: ${missing[*]}"
    say "install them as root: apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get -o DPkg::Lock::Timeout=600 update
  quietly apt-get -o DPkg::Lock::Timeout=600 install --yes --no-install-recommends \
    "${missing[@]}"
}

# make_python: Debian's Python, whatever else is first in PATH, because the
# pinned packages are known to exist for it.
make_python() {
  local key
  key="$PWD $(/usr/bin/python3 --version) ${python_packages[*]}"
  has_key build/venv "$key" && return
  say "installing Python packages into build/venv"
  rm -rf build/venv
  quietly /usr/bin/python3 -m venv build/venv
  quietly build/venv/bin/pip install --only-binary :all: "${python_packages[@]}"
  echo "$key" >build/venv/setup-key
}

# compile_onnx FOLDER: downloads the source distribution and installs it there.
compile_onnx() {
  local prefix=$1 flags=("${@:2}")
  local archive=$scratch/onnx-$onnx_version.tar.gz
  say "downloading ONNX $onnx_version"
  quietly build/venv/bin/pip download --no-deps --no-binary onnx \
    --dest "$scratch" "onnx==$onnx_version"
  quietly sha256sum --check - <<<"$onnx_sha256  $archive"
  quietly tar -xf "$archive" -C "$scratch"
  say "compiling ONNX $onnx_version, once for all clones (two minutes of CPU)"
  quietly build/venv/bin/cmake -G Ninja -S "$scratch/onnx-$onnx_version" \
    -B "$scratch/build" -DPython3_EXECUTABLE="$PWD/build/venv/bin/python" \
    -DCMAKE_INSTALL_PREFIX="$prefix" "${flags[@]}"
  quietly build/venv/bin/cmake --build "$scratch/build" --target install
}

# install_onnx: from the cache, which a failed or interrupted run leaves as it
# was: entries are made elsewhere and renamed into place.
install_onnx() {
  # g++ and nothing else: a build with clang links the same library.
  local flags=(
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ -DCMAKE_CXX_FLAGS=
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DONNX_BUILD_PYTHON=OFF -DONNX_USE_PROTOBUF_SHARED_LIBS=ON
    -DONNX_USE_UNITY_BUILD=ON
  )
  local key entry
  key="$onnx_sha256 $(g++ -dumpmachine) g++ $(g++ -dumpfullversion)"
  key+=" $(protoc --version) ${flags[*]}"
  has_key build/deps/onnx "$key" && return
  entry=$cache/onnx-$onnx_version-$(sha256sum <<<"$key" | head -c 12)
  if ! has_key "$entry" "$key"; then
    compile_onnx "$scratch/onnx" "${flags[@]}"
    echo "$key" >"$scratch/onnx/setup-key"
    rm -rf "$entry"
    mv "$scratch/onnx" "$entry"
  fi
  say "installing ONNX $onnx_version into build/deps/onnx"
  rm -rf build/deps
  mkdir build/deps
  cp -r "$entry" build/deps/unfinished
  mv build/deps/unfinished build/deps/onnx
}

mkdir -p "$cache" build
exec {lock}>"$cache/lock"
flock --nonblock "$lock" || {
  say "waiting for another run to finish"
  flock "$lock"
}
trap 'rm -rf "$scratch"' EXIT
rm -rf "$scratch" # of a run that was killed
mkdir "$scratch"

install_debian_packages
make_python
install_onnx
say "ready"
