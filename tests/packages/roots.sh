# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests of packages: clean installations of Debian 12 in the directory $work, and steps that are
# counted. Needs root and debootstrap.
passed=0

# In namespaces of its own, so that nothing stays mounted or running.
in_root() { # ROOT SCRIPT [ARGUMENTS]
    unshare --mount --pid --fork --kill-child --root="$work/$1" --mount-proc \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive PIP_CERT=/etc/ssl/machine.pem bash -euc "$2" bash "${@:3}"
}

# With what this machine needs to reach the archive of Debian, and PyPI.
make_root() { # ROOT
    debootstrap --variant=minbase --include=ca-certificates bookworm "$work/$1"
    cp /etc/resolv.conf /etc/hosts "$work/$1/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$work/$1/etc/ssl/machine.pem"
    find /etc/apt/apt.conf.d -name '*proxy*' -exec cp -t "$work/$1/etc/apt/apt.conf.d" {} +
    in_root "$1" 'apt-get update -qq'
}

step() { # LABEL COMMAND...
    local log="$work/${1// /-}.log"
    printf '== %s\n' "$1"
    if ! "${@:2}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$passed passed, 1 failed"
        exit 1
    fi
    passed=$((passed + 1))
}

# Removes what an earlier run has left.
new_work() { # DIRECTORY
    rm -rf "$1"
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
}
