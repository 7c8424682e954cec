#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel in clean installations of Debian, below build/roots, and with other Pythons of this machine:
# tests/wheel/check_roots.sh [SUITE|PYTHON...]. Debian 11 has no Python for it, so the program alone
# runs there. As root; needs debootstrap, and what ./dev wheel has built. Ends with a table, for
# tools/record.py take wheel-roots.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

wheel=(build/wheels/penstock-*_x86_64.whl)
table=$'| System | Python | import, CPU time | an epoch | s3:// over TLS | checks |\n|---|---|---|---|---|---|\n'
# shellcheck disable=SC2016 # apt fills it in
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)

make_root() { # SUITE PACKAGES
    local root=build/roots/$1
    [ ! -e "$root/.complete" ] || return 0
    rm -rf "$root"
    debootstrap --variant=minbase --include="$2" "$1" "$root" "$mirror" \
        /usr/share/debootstrap/scripts/sid >"$root.log" 2>&1 || {
        tail -n 5 "$root.log"
        return 1
    }
    touch "$root/.complete"
}

check_program() { # SUITE
    local root=build/roots/$1
    rm -rf "$root/try"
    mkdir "$root/try"
    cp build/wheel/x86_64/meson/penstock "$root/try"
    build/venv/bin/python examples/make_photos.py "$root/try/photos"
    chroot "$root" sh -ec 'cd /try
        ./penstock pack photos -o photos.pen >/dev/null
        ./penstock verify photos.pen
        ./penstock doctor photos.pen >/dev/null
        ./penstock --version'
}

system_name() { # ROOT
    local version
    version=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$1/etc/os-release")
    [ ! -s "$1/etc/debian_version" ] || version="Debian $(cat "$1/etc/debian_version")"
    echo "$version, glibc $(chroot "$1" ldd --version | sed -n '1s/.* //p')"
}

# What check_wheel.py has printed, as a row of the table.
add_row() { # FILE ROOT
    local epoch='**no**' s3='**no**'
    ! grep -q '^ok     an epoch' "$1" || epoch=yes
    ! grep -q '^ok     s3://, CA by' "$1" || s3=yes
    table+="| $(system_name "$2") | $(sed -n 's/^ok     import: .* Python //p' "$1") "
    table+="| $(sed -n 's/^ok     import: \(.* ms\), .*/\1/p' "$1") | $epoch | $s3 "
    table+="| $(tail -n 1 "$1") |"$'\n'
}

check() { # SUITE|PYTHON
    local root=build/roots/$1 options=() log=build/roots/checks.txt r=0
    case $1 in
    bullseye)
        make_root "$1" ca-certificates && check_program "$1" || return 1
        table+="| $(system_name "$root") | the program alone | | | | pack, verify, bench |"$'\n'
        return 0
        ;;
    /*) root=/ options=(--python "$1") ;;
    *) make_root "$1" python3-venv,ca-certificates && options=(--root "$root") || return 1 ;;
    esac
    build/venv/bin/python tests/wheel/check_wheel.py "${wheel[0]}" "${options[@]}" >$log || r=1
    cat $log
    add_row $log "$root"
    return $r
}

r=0
mkdir -p build/roots
[ $# != 0 ] || set -- bullseye bookworm trixie forky
for place in "$@"; do
    echo "== $place"
    check "$place" || r=1
done
printf '\n%s' "$table"
exit $r
