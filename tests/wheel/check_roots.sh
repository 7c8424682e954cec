#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel in clean installations of Debian, below build/roots: tests/wheel/check_roots.sh [SUITE...]
# Debian 11 has no Python for it, so the program alone runs there. As root; needs debootstrap, and what
# ./dev wheel has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

wheel=(build/wheels/penstock-*_x86_64.whl)
# shellcheck disable=SC2016 # apt fills it in
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)

make_root() { # SUITE PACKAGES
    local root=build/roots/$1
    [ ! -e "$root/.complete" ] || return 0
    rm -rf "$root"
    mkdir -p build/roots
    debootstrap --variant=minbase --include="$2" "$1" "$root" "$mirror" \
        /usr/share/debootstrap/scripts/sid >"$root.log" 2>&1 || {
        tail -n 5 "$root.log"
        return 1
    }
    touch "$root/.complete"
}

check_program() { # SUITE
    local root=build/roots/$1
    make_root "$1" ca-certificates || return 1
    rm -rf "$root/try"
    mkdir "$root/try"
    cp build/wheel/x86_64/meson/penstock "$root/try"
    build/venv/bin/python examples/make_photos.py "$root/try/photos"
    chroot "$root" sh -ec 'cd /try
        ./penstock pack photos -o photos.pen >/dev/null
        ./penstock verify photos.pen
        ./penstock bench photos.pen >/dev/null
        ./penstock --version'
}

r=0
[ $# != 0 ] || set -- bullseye bookworm trixie forky
for suite in "$@"; do
    echo "== $suite"
    if [ "$suite" = bullseye ]; then
        check_program "$suite" || r=1
    else
        make_root "$suite" python3-venv,ca-certificates &&
            build/venv/bin/python tests/wheel/check_wheel.py "${wheel[0]}" \
                --root "build/roots/$suite" || r=1
    fi
done
exit $r
