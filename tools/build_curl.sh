#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small libcurl for wheels, static and for HTTP and HTTPS alone: DIR/lib/pkgconfig/libcurl.pc.
# Debian's own brings libldap, libssh2, Kerberos, librtmp, nghttp2 and more. This one is made from the
# same source package, so it has Debian's fixes, too. Usage: tools/build_curl.sh DIR
set -euo pipefail

dir=$(mkdir -p "$1" && cd "$1" && pwd)
own=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
jobs=${PENSTOCK_JOBS:-$(nproc)}

die() {
    printf 'build_curl: %s\n' "$*" >&2
    exit 1
}

# Sources are asked for by package name, where the binaries come from. apt's own lists stay as they
# are: many machines have no deb-src lines.
apt_lists() {
    local origin
    mkdir -p "$dir/apt/parts" "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    for origin in Debian Ubuntu; do
        # shellcheck disable=SC2016 # apt fills these in
        apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
            'Created-By: Packages' "Origin: $origin"
    done | sort -u >"$dir/apt/sources.list"
    [ -s "$dir/apt/sources.list" ] || die "apt knows no package lists; run apt-get update"
}

apt_own() { # COMMAND...
    apt-get -qq -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts="$dir/apt/parts" \
        -o Dir::State::lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" \
        -o APT::Sandbox::User=root "$@"
}

fetch() {
    command -v dpkg-source >/dev/null || die "dpkg-source: not found; install dpkg-dev"
    apt_lists
    apt_own update
    rm -rf "$dir/package"
    mkdir "$dir/package"
    (cd "$dir/package" && apt_own source --download-only curl)
    dpkg-source --no-check -x "$dir"/package/curl_*.dsc "$dir/package/src" >"$dir/unpack.log" 2>&1 ||
        die "the source cannot be unpacked: $dir/unpack.log"
}

# What is left: HTTP/1.1 over TLS, proxies, names resolved in threads. Dates are read by src/net/http/date.c.
# netrc stays in as an option that can be switched off. The machine's openssl.cnf is another OpenSSL's, so it is not read.
build() {
    local off=() name
    for name in ftp file ldap ldaps rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual \
        libcurl-option ntlm tls-srp unix-sockets cookies doh mime dateparse alt-svc hsts websockets \
        openssl-auto-load-config shared dependency-tracking get-easy-options; do
        off+=("--disable-$name")
    done
    for name in nghttp2 nghttp3 ngtcp2 zlib brotli zstd libidn2 libpsl libssh2 libssh librtmp \
        gssapi ca-bundle ca-path; do
        off+=("--without-$name")
    done
    cd "$dir/package/src"
    ./configure --quiet --prefix="$dir" --enable-static --with-pic --with-openssl \
        --enable-threaded-resolver "${off[@]}" \
        CFLAGS="-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$dir/package/src=curl" \
        >"$dir/configure.log" 2>&1 || die "configure failed: $dir/configure.log"
    {
        make -j "$jobs" -C lib
        make -C lib install
        make -C include install
        make install-pkgconfigDATA
    } >"$dir/make.log" 2>&1 || die "make failed: $dir/make.log"
    cp COPYING "$dir/COPYING"
}

# Made once for each version of this script and of Debian's package.
stamp="$(sha256sum <"$own") $(dpkg-query -W -f '${Version}' libcurl4-openssl-dev 2>/dev/null || true)"
[ "$(cat "$dir/.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
fetch
build
rm -rf "$dir/package" "$dir/apt"
echo "$stamp" >"$dir/.stamp"
