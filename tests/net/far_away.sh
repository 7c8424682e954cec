#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server that is far away: HAProxy before an HTTP server on this machine. Each request waits before it
# is passed on, all of them at the same time, so it is latency that grows and not the bandwidth that
# shrinks; some are answered 503 in the manner of S3. The Host header stays: clients sign for PORT.
set -euo pipefail
dir= # main sets it
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

usage() {
    cat >&2 <<TEXT
$PROGRAM up   DIR PORT TO_PORT MS [PERCENT]   127.0.0.1:PORT (0: any free one) is then 127.0.0.1:TO_PORT,
                                         MS milliseconds away; PERCENT of the requests get a 503
$PROGRAM env  DIR                             print the environment for clients again
$PROGRAM down DIR                             end it and remove DIR
$PROGRAM run  DIR PORT TO_PORT MS [PERCENT]   up, then down when standard input ends
TEXT
    exit 2
}

write_conf() { # PORT TO_PORT MS SHARE, of 10,000
    cat >"$dir/pause.lua" <<'LUA'
core.register_action("pause", { "http-req" }, function(_, ms)
    core.msleep(tonumber(ms))
end, 1)
LUA
    printf '%s' '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>' \
        '<Message>Please reduce your request rate.</Message></Error>' >"$dir/slow_down.xml"
    {
        echo "global"
        echo "    lua-load $dir/pause.lua"
        echo "    maxconn 4096"
        echo "    nbthread 1"
        echo "defaults"
        echo "    mode http"
        echo "    timeout connect 5s"
        echo "    timeout client 120s"
        echo "    timeout server 120s"
        echo "listen distance"
        echo "    bind 127.0.0.1:$1"
        [ "$3" = 0 ] || echo "    http-request lua.pause $3"
        [ "$4" = 0 ] || echo "    http-request return status 503 content-type application/xml" \
            "file $dir/slow_down.xml if { rand(10000) lt $4 }"
        echo "    http-reuse always"
        echo "    server near 127.0.0.1:$2"
    } >"$dir/haproxy.cfg"
}

check() { # PORT TO_PORT MS [PERCENT]
    local to=${2:-} ms=${3:-} percent=${4:-0}
    need_programs haproxy haproxy python3
    check_port "${1:-}"
    [[ $to =~ ^[0-9]+$ ]] || die "TO_PORT: expected a port, found '$to'"
    [[ $ms =~ ^[0-9]{1,5}$ ]] || die "MS: expected milliseconds, found '$ms'"
    [[ $percent =~ ^[0-9]{1,3}(\.[0-9]{1,2})?$ ]] || die "PERCENT: expected 0 to 100, found '$percent'"
}

start() { # PORT TO_PORT MS [PERCENT]
    local port=$1 share
    share=$(awk -v p="${4:-0}" 'BEGIN { printf "%d", p * 100 + 0.5 }')
    [ "$port" != 0 ] || port=$(free_port)
    write_conf "$port" "$2" "$3" "$share"
    launch haproxy haproxy -db -f "$dir/haproxy.cfg"
    await 10 HAProxy answers "$port"
    echo "AWS_ENDPOINT_URL=http://127.0.0.1:$port" >"$dir/env"
}

main "$@"
