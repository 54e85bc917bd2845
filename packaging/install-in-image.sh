#!/bin/bash
# Install Understudy from its unpacked source distribution into the Debian of a container image: commands, checks,
# workloads and player in /opt/understudy. Compilers and headers are removed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=/opt/understudy
export DEBIAN_FRONTEND=noninteractive PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

apt-get update
packages=()
for package in $(awk -F'|' '/^(run|more) /{print $3}' requirements-debian.txt); do
  [ -z "$(apt-cache show --no-all-versions "$package" 2>/dev/null)" ] || packages+=("$package")
done
apt-get install -y --no-install-recommends "${packages[@]}"

python3 -m venv "$prefix"
"$prefix/bin/pip" install --require-hashes -r requirements.txt
"$prefix/bin/pip" install --no-deps --no-build-isolation . ./studies/*/
cmake -S . -B build -DCMAKE_INSTALL_PREFIX="$prefix" -DUND_INSTALL_SUITE=OFF -DBUILD_TESTING=OFF
cmake --build build -j "$(getconf _NPROCESSORS_ONLN)"
cmake --install build

# The libraries of the player stay, and the packages with programs that are called.
libraries=$(ldd "$prefix/bin/understudy-replay" | awk '/=> \//{print $3}' | xargs -n1 readlink -f |
  xargs dpkg-query --search | cut -d: -f1 | sort -u)
programs=()
for package in "${packages[@]}"; do
  case $package in
    gcc | g++ | make | cmake | pkg-config | python3-venv | *-dev) ;;
    *) programs+=("$package") ;;
  esac
done
apt-mark auto '.*' >/dev/null
# shellcheck disable=SC2086  # names, one word each
apt-mark manual "${programs[@]}" $libraries >/dev/null
apt-get purge -y --auto-remove
apt-get clean
rm -rf /var/lib/apt/lists/*
"$prefix/bin/understudy" --version
