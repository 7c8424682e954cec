#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian source package and the binary packages of HEAD.
#
#     packaging/build_deb.sh [DIRECTORY]    default: build/debian; its contents are removed first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-build/debian}
version=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
upstream=${version%-*}

rm -rf "$out"
mkdir -p "$out"
git archive --format=tar.gz --prefix="penstock-$upstream/" -o "$out/penstock_$upstream.orig.tar.gz" \
    HEAD
tar -C "$out" -xf "$out/penstock_$upstream.orig.tar.gz"
cd "$out/penstock-$upstream"
cp -r packaging/debian debian
dpkg-buildpackage -us -uc
