#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of HEAD in a clean Debian 12, and checks them with lintian. Then
# installs, uses and removes them in another clean one. Needs root and debootstrap.
#
#     tests/packages/check_deb.sh [DIRECTORY]    default: build/deb-check; removed first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/roots.sh
. tests/packages/roots.sh

make_roots() {
    make_root build
    cp -a "$work/build" "$work/use"
}

build() {
    mkdir "$work/build/src"
    git archive HEAD | tar -C "$work/build/src" -x
    cp -r "$work/build/src/packaging/debian" "$work/build/src/debian"
    in_root build 'apt-get install -y --no-install-recommends build-essential lintian
        cd /src && apt-get build-dep -y --no-install-recommends ./ && rm -r debian
        apt-get install -y --no-install-recommends git
        git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm x
        packaging/build_deb.sh /out'
}

check_lintian() {
    in_root build 'lintian --version; lintian --info --fail-on error /out/*.changes'
}

use() {
    mkdir "$work/use/debs"
    cp "$work"/build/out/*.deb "$work/use/debs/"
    cp -r "$work/build/src" "$work/use/src"
    in_root use 'apt-get install -y --no-install-recommends /debs/penstock_*.deb && penstock --version
        apt-get install -y --no-install-recommends /debs/*.deb python3-numpy python3-pil \
            cmake gcc libc6-dev make pkg-config
        cd /src && packaging/debian/tests/installed'
}

remove() {
    # shellcheck disable=SC2016 # the other shell expands it
    in_root use 'apt-get purge -y "*penstock*"
        left=$(find /usr /etc /var/lib -xdev -name "*penstock*" -not -path "/var/lib/dpkg/*")
        [ -z "$left" ] || { echo "$left" && exit 1; }'
}

new_work "${1:-build/deb-check}"
step "clean roots" make_roots
step "build" build
step "lintian" check_lintian
step "install and use" use
step "remove" remove
ls -l "$work"/build/out/*.deb
grep -hE '^[EW]:' "$work/lintian.log" || true
echo "$passed passed, 0 failed"
