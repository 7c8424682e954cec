# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the start scripts of this folder share: a directory that holds everything of one server, the
# processes started in it, waiting with a deadline, and the verbs. To be sourced. The script that does
# so defines `start ARGUMENTS...` (brings the server up in $dir and leaves its variables, one
# NAME=VALUE each, in $dir/env), `check ARGUMENTS...` (dies of what cannot work, before anything is made)
# and `usage`.

PROGRAM=$(basename "$0")

say() { printf '%s: %s\n' "$PROGRAM" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

need_programs() { # "PACKAGE TO INSTALL ..." PROGRAM...
    local packages=$1 missing=() p
    shift
    for p in "$@"; do
        command -v "$p" >/dev/null || missing+=("$p")
    done
    [ ${#missing[@]} = 0 ] ||
        die "${missing[*]}: not found; apt-get install -y --no-install-recommends $packages"
}

# The kernel's choice; another process can still be quicker, and then the start says so.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

check_port() { # NUMBER, 0 for any
    [ "$1" != 0 ] || return 0
    [[ $1 =~ ^[1-9][0-9]{0,4}$ ]] || die "'$1': not a port"
    ! answers "$1" || die "port $1 is in use"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # PORT

# Daemons are kept in the foreground, in the process group of this script, and noted with the
# directory that their command line names: so a stale number never ends a foreign process.
launch() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$dir/log/$name.out" 2>&1 </dev/null &
    echo "$! $name" >>"$dir/pids"
    # Until then it still has this script's command line.
    while ! is_ours $! && kill -0 $! 2>/dev/null; do sleep 0.01; done
}

is_ours() { # PID
    grep -qsF -- "$dir/" "/proc/$1/cmdline"
}

all_alive() {
    local pid name
    while read -r pid name; do
        is_ours "$pid" || { say "$name has ended" && return 1; }
    done <"$dir/pids"
}

# Waits for COMMAND to succeed; gives up at once when a process has died.
await() { # SECONDS WHAT COMMAND...
    local deadline=$((SECONDS + $1)) seconds=$1 what=$2
    shift 2
    until "$@"; do
        all_alive || return 1
        [ $SECONDS -lt $deadline ] || { say "$what: not there after $seconds s" && return 1; }
        sleep 0.1
    done
}

# Nothing in here is worth an orderly end.
kill_all() {
    local pid name deadline=$((SECONDS + 10))
    [ -f "$dir/pids" ] || return 0
    if [ -f "$dir/tool" ] && is_ours "$(<"$dir/tool")"; then
        kill "$(<"$dir/tool")" 2>/dev/null || true # timeout(1), which passes it on
    fi
    while read -r pid name; do
        disown "$pid" 2>/dev/null || true # or the shell would report its end
        ! is_ours "$pid" || kill -KILL "$pid" 2>/dev/null || true
    done <"$dir/pids"
    while read -r pid name; do
        while is_ours "$pid" && [ $SECONDS -lt $deadline ]; do sleep 0.05; done
    done <"$dir/pids"
    rm -f "$dir/pids"
}

# A signal, or a failure of any command in it, ends in `failed`; so this is not called with || or if,
# which would turn off the shell's -e in all of it.
bring_up() {
    [ ! -e "$dir" ] || die "$dir exists; '$PROGRAM down $dir' removes what an earlier start left"
    check "$@"
    mkdir -p "$dir/log"
    : >"$dir/.stage"
    : >"$dir/pids"
    trap failed EXIT HUP INT TERM
    start "$@"
}

# Handlers may come in one another's way; from here on nothing does.
alone() {
    trap '' HUP INT TERM
    trap - EXIT
}

failed() {
    alone
    kill_all
    say "it did not start; the logs stay in $dir/log"
    tail -n 5 "$dir"/log/* >&2 || true
    exit 1
}

show_env() {
    [ -f "$dir/env" ] || die "$dir: no server was started here"
    sed 's/^/export /' "$dir/env"
}

down() {
    [ -e "$dir" ] || return 0
    [ -f "$dir/.stage" ] || die "$dir: not a directory of this script; nothing removed"
    kill_all
    rm -rf "$dir"
}

up() {
    bring_up "$@"
    trap - EXIT HUP INT TERM
    show_env
}

finish() {
    alone
    down
    exit 0
}

# For tests: up, and down again as soon as standard input ends or a signal comes, whatever happens to
# the test.
run() {
    bring_up "$@"
    trap finish EXIT HUP INT TERM
    show_env
    echo ready
    while read -r _; do :; done
    finish
}

main() { # VERB DIR ARGUMENTS...
    [ $# -ge 2 ] || usage
    local verb=$1
    dir=$(realpath -m "$2")
    shift 2
    case $verb in
    up | run) "$verb" "$@" ;;
    env) show_env ;;
    down) down ;;
    *) usage ;;
    esac
}
