#!/usr/bin/env bash
# Installs the Debian 12 packages that the build and the tests need, if any is missing. Sourced by script/demo and
# script/test; needs root (or sudo) only when something is missing.
set -euo pipefail

fabricast_packages=(
  g++ cmake ninja-build pkg-config
  libsimgrid-dev libboost-graph-dev libyaml-cpp-dev libeigen3-dev libcli11-dev libfmt-dev nlohmann-json3-dev libexpected-dev
  libpugixml-dev libsqlite3-dev
)
if [[ ${FABRICAST_WITH_TESTS:-0} == 1 ]]; then
  # MPI and Python are optional at build: the tests want them.
  fabricast_packages+=(libopenmpi-dev openmpi-bin pybind11-dev python3-dev python3-numpy)
  fabricast_packages+=(doctest-dev librapidcheck-dev python3 python3-yaml python3-jsonschema clang-format-14 git)
fi
if [[ ${FABRICAST_WITH_CLANG:-0} == 1 ]]; then
  fabricast_packages+=(clang-14 libclang-rt-14-dev)
fi

install_missing_packages() {
  local missing=() package
  for package in "${fabricast_packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  local root=()
  [[ $(id -u) -eq 0 ]] || root=(sudo)
  echo "installing: ${missing[*]}" >&2
  "${root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
