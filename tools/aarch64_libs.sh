#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's arm64 packages into a folder of their own: the libraries of ./dev neon, or those that are
# named. The machine stays as it is: no foreign architecture, nothing installed, no root needed.
set -euo pipefail

[ $# != 0 ] || {
    echo "usage: tools/aarch64_libs.sh DIRECTORY [PACKAGE...]" >&2
    exit 2
}
dir=$PWD/$1
shift
packages=(libjpeg62-turbo-dev libjpeg62-turbo libspng-dev libspng0 libwebp-dev libwebp7
    libarchive-dev zlib1g-dev zlib1g libbz2-dev liblzma-dev libzstd-dev liblz4-dev
    libssl-dev libssl3 libexpat1-dev libexpat1 libjansson-dev libjansson4
    # libcurl, and what Debian's links.
    libcurl4-openssl-dev libcurl4 libnghttp2-14 libidn2-0 librtmp1 libssh2-1 libpsl5 libzstd1
    libbrotli1 libldap-2.5-0 libsasl2-2 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0
    libcom-err2 libkeyutils1 libunistring2 libgnutls30 libhogweed6 libnettle8 libgmp10
    libp11-kit0 libtasn1-6 libffi8)
[ $# = 0 ] || packages=("$@")
[ "$(cat "$dir/.packages" 2>/dev/null)" != "${packages[*]}" ] || exit 0

rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/debs"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=
    -o Acquire::Languages=none -o "Dir::State::Lists=$dir/apt/lists" -o "Dir::Cache=$dir/apt"
    -o Dir::State::status=/dev/null)
"${apt[@]}" update
(cd "$dir/apt/debs" && "${apt[@]}" download "${packages[@]}")
for deb in "$dir"/apt/debs/*.deb; do
    dpkg-deb -x "$deb" "$dir"
done
rm -rf "$dir/apt"
echo "${packages[*]}" >"$dir/.packages"
