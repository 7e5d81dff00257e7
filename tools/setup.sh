#!/usr/bin/env bash
# Installs the Debian packages that Sluice is built from, where they are missing.
# Usage: tools/setup.sh [further package]...
set -euo pipefail

packages=(ninja-build cmake g++ pkg-config libpcre2-dev nlohmann-json3-dev libcli11-dev
          libspdlog-dev libfmt-dev libgtest-dev libbenchmark-dev libutf8proc-dev libboost1.81-dev
          libedit-dev libsqlite3-dev python3 python3-pip clang-format "$@")

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "setup: this script installs Debian packages and finds no apt-get here." >&2
  echo "setup: install what these hold, then run make with SETUP=true: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
  # Two architectures of one package print two words.
  [[ $status == installed* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "setup: needs root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"
}
apt update > /dev/null || echo "setup: the package lists could not be refreshed; trying anyway" >&2
if ! apt install -y --no-install-recommends "${missing[@]}" > /dev/null; then
  echo "setup: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
