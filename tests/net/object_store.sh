#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real S3 store to test against: Ceph with one monitor, one OSD that keeps its objects in memory, and
# the RADOS gateway, all on 127.0.0.1 and in one directory.
set -euo pipefail
dir= # main sets it
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

PACKAGES="ceph-mon ceph-osd radosgw ceph-common"
KEY_ID=stage-key
SECRET=stage-secret
START_LIMIT_S=30
MEMORY_BYTES=$((8 << 30)) # what the store says it has; taken only as objects come

usage() {
    cat >&2 <<TEXT
$PROGRAM up   DIR [PORT]   start it (PORT: 7480; 0: any free one) and print the environment for clients
$PROGRAM env  DIR          print that environment again
$PROGRAM down DIR          end it and remove DIR
$PROGRAM run  DIR [PORT]   up, then down when standard input ends
TEXT
    exit 2
}

# Wide open, which is right for a server that only this machine reaches: no keys between the daemons. One
# copy of everything. The monitor decides at once instead of once a second, which makes the pools of
# the gateway in a third of the time; removed objects leave memory in seconds instead of hours.
write_conf() { # FSID PORT MONITOR_PORT
    cat >"$dir/ceph.conf" <<CONF
[global]
    fsid = $1
    mon_host = v1:127.0.0.1:$3
    public_network = 127.0.0.0/8
    ms_bind_ipv4 = true
    ms_bind_ipv6 = false
    ms_bind_msgr2 = false
    auth_cluster_required = none
    auth_service_required = none
    auth_client_required = none
    run_dir = $dir/run
    pid_file =
    admin_socket = $dir/run/\$name.\$pid.sock
    log_file = $dir/log/\$name.log
    log_to_stderr = false
    osd_pool_default_size = 1
    osd_pool_default_min_size = 1
    osd_pool_default_pg_num = 8
    osd_pool_default_pg_autoscale_mode = off

[mon]
    mon_data = $dir/mon
    mon_allow_pool_size_one = true
    mon_data_avail_crit = 1
    mon_max_pg_per_osd = 500
    paxos_propose_interval = 0.05
    paxos_min_wait = 0.01

[osd]
    osd_data = $dir/osd
    osd_objectstore = memstore
    osd_crush_update_on_start = false
    osd_class_update_on_start = false
    memstore_device_bytes = $MEMORY_BYTES

[client]
    rgw_data = $dir/rgw
    rgw_frontends = beast endpoint=127.0.0.1:$2
    rgw_dns_name = localhost
    rgw_gc_obj_min_wait = 10
    rgw_gc_processor_period = 10
CONF
}

in_cluster() { # COMMAND ARGUMENTS...
    local command=$1
    shift
    timeout --foreground $START_LIMIT_S "$command" --conf "$dir/ceph.conf" "$@" \
        >>"$dir/log/start.log" 2>&1 &
    echo $! >"$dir/tool"
    wait $! # and not in the foreground, where the shell would not listen to signals
}

start_monitor() { # FSID PORT
    monmaptool --create --fsid "$1" --addv one "[v1:127.0.0.1:$2]" "$dir/monmap" \
        >>"$dir/log/start.log" 2>&1
    in_cluster ceph-mon --mkfs --id one --monmap "$dir/monmap"
    launch mon ceph-mon --foreground --conf "$dir/ceph.conf" --id one
    await 10 "the monitor" answers "$2"
}

# Its place in the map is given to it here: an OSD that asks for one itself may do so before it knows
# the cluster's id, is refused ("wrong fsid") and ends.
start_osd() {
    local uuid
    uuid=$(</proc/sys/kernel/random/uuid)
    in_cluster ceph osd new "$uuid"
    in_cluster ceph osd crush add osd.0 1.0 root=default host=here
    in_cluster ceph-osd --mkfs --id 0 --osd-uuid "$uuid"
    launch osd ceph-osd --foreground --conf "$dir/ceph.conf" --id 0
}

# The tool makes the pools that hold users, so there is no need to wait for the gateway first.
start_gateway() { # PORT
    in_cluster radosgw-admin user create --uid=stage --display-name=stage \
        --access-key="$KEY_ID" --secret-key="$SECRET"
    launch gateway radosgw --foreground --conf "$dir/ceph.conf" --name client.gateway
    await $START_LIMIT_S "the gateway" greets "$1"
}

greets() { # PORT
    local line
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET / HTTP/1.0\r\n\r\n' >&3
    read -r -t 5 line <&3 || line=
    exec 3>&-
    [[ $line == HTTP/1.?\ 200* ]]
} 2>/dev/null

check() { # [PORT]
    need_programs "$PACKAGES" ceph-mon ceph-osd radosgw radosgw-admin ceph monmaptool python3
    check_port "${1:-7480}"
}

start() { # [PORT]
    local port=${1:-7480} fsid monitor_port
    [ "$port" != 0 ] || port=$(free_port)
    monitor_port=$(free_port)
    fsid=$(</proc/sys/kernel/random/uuid)
    mkdir "$dir"/{mon,osd,run,rgw}
    write_conf "$fsid" "$port" "$monitor_port"
    start_monitor "$fsid" "$monitor_port"
    start_osd
    start_gateway "$port"
    cat >"$dir/env" <<ENV
AWS_ENDPOINT_URL=http://127.0.0.1:$port
AWS_ACCESS_KEY_ID=$KEY_ID
AWS_SECRET_ACCESS_KEY=$SECRET
AWS_REGION=us-east-1
AWS_DEFAULT_REGION=us-east-1
ENV
}

main "$@"
