#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy over the library and the programs, and prints the findings without their notes.
# A file found clean is not read again until it, a header or the list of checks changes.
#     tools/tidy.sh JOBS CLANG_TIDY COMPILE_COMMANDS_DIRECTORY [sample]
# With `sample` it reads a sixth of the files, another sixth for the next commit.
set -euo pipefail
jobs=$1 dir=$3 share=1 turn=0
if [ "${4:-}" = sample ]; then
    share=6 turn=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % 6))
fi
mkdir -p "$dir/clean"
export tidy=$2 dir

check() { # FILE
    local options=() out mark
    mark=$dir/clean/${1//\//-}
    if [ -f "$mark" ] && [ "$mark" -nt "$1" ] && [ -z "$(find src video include cli python sim tools .clang-tidy \
        \( -name '*.h' -o -name .clang-tidy \) -newer "$mark" -print -quit)" ]; then
        return 0
    fi
    case $1 in
    cli/* | python/* | video/* | src/base/error.c) options=("--checks=-clang-analyzer-core.*") ;;
    # Lets the analyzer know which calls return a failure.
    *) options=("--extra-arg=-include" "--extra-arg=$PWD/tools/analyzer.h") ;;
    esac
    if out=$("$tidy" --quiet -p "$dir" "${options[@]}" "$1" 2>/dev/null); then
        touch "$mark"
        return 0
    fi
    grep -E '(error|warning): ' <<<"$out" || echo "$1: clang-tidy failed"
    return 1
}
export -f check

# Files for another kind of processor cannot be read here, and the simulated disk of the lab needs
# FUSE, which CI does not install.
find src video cli python sim -name '*.c' ! -name seek_disk.c ! -name "*_$([ "$(uname -m)" = x86_64 ] && echo neon || echo avx*).c" |
    sort | awk -v share="$share" -v turn="$turn" 'NR % share == turn' |
    xargs -P "$jobs" -I{} bash -c 'check {}'
