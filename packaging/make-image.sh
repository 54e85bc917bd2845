#!/usr/bin/env bash
# Build the image localhost/understudy from the source distribution in dist/ (`make image` makes it first).
#
# BASE=IMAGE names the image to start from, for example docker.io/library/debian:trixie-slim. Without it,
# mmdebstrap makes a minimal Debian 13 in build/image from the mirror DEBIAN_MIRROR. Proxies, PIP_INDEX_URL and
# PIP_CERT are passed on; buildah reads BUILDAH_ISOLATION and STORAGE_DRIVER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${BASE-}" ]; then
  root=build/image/root.tar
  mkdir -p "${root%/*}"
  if [ ! -e "$root" ]; then
    mmdebstrap --variant=minbase --format=tar trixie "$root.part" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
    mv "$root.part" "$root"
  fi
  BASE=localhost/understudy-base
  container=$(buildah from scratch)
  buildah add -q "$container" "$root" / >/dev/null
  buildah commit -q --rm "$container" "$BASE" >/dev/null
fi

options=(--build-arg "BASE=$BASE")
for variable in http_proxy https_proxy no_proxy PIP_INDEX_URL; do
  [ -z "${!variable-}" ] || options+=(--build-arg "$variable=${!variable}")
done
[ -z "${PIP_CERT-}" ] || options+=(--volume "$PIP_CERT:/run/pip-ca.crt:ro" --build-arg PIP_CERT=/run/pip-ca.crt)
buildah build "${options[@]}" -f packaging/Containerfile -t localhost/understudy dist
