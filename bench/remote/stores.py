# SPDX-License-Identifier: Apache-2.0
"""The servers of a run: a store, and the same store behind a delay; their cores and use."""

import contextlib
import pathlib
import sys

from common import places

from remote import cores

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
import net_stage

BUCKET = "remote-speed"


class Servers:
    """`near` is the store itself, `delayed` the same behind a proxy that delays each request."""

    def __init__(self, store, delay_ms, core=None):
        self.store, self.delay_ms, self.core = store, delay_ms, core
        self.stack, self.delayed = contextlib.ExitStack(), None

    def __enter__(self):
        with contextlib.ExitStack() as starting:
            self.near = starting.enter_context(self.store)
            if self.delay_ms:
                self.delayed = starting.enter_context(net_stage.FarAway(self.near, self.delay_ms))
            self.stack = starting.pop_all()
        self.client = self.near.boto3(retries=5)
        if BUCKET not in [b["Name"] for b in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def pids(self):
        """{process id: name}"""
        found = {}
        for server in filter(None, (self.near, self.delayed)):
            if hasattr(server, "directory"):
                text = (pathlib.Path(server.directory) / "pids").read_text(encoding="utf-8")
                pairs = (line.split() for line in text.splitlines())
                found.update((int(pid), name) for pid, name in pairs)
            else:
                found[server.process.child.pid] = "s3_server"
        return found

    def pin(self):
        for pid in self.pids() if self.core is not None else ():
            cores.pin_process(pid, self.core)

    def seconds(self):
        """{server: its processor seconds}"""
        return {name: cores.process_seconds(pid) for pid, name in self.pids().items()}


def ceph():
    """A store of its own, whatever else runs: it is pinned, and holds gigabytes."""
    missing = net_stage.missing_ceph() or net_stage.missing_haproxy()
    if missing:
        raise SystemExit(f"remote_speed.py: {missing}")
    return net_stage.Ceph()


def scripted():
    if net_stage.missing_haproxy():
        raise SystemExit(f"remote_speed.py: {net_stage.missing_haproxy()}")
    return net_stage.S3Server(buckets=[BUCKET])
