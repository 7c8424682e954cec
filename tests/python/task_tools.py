# SPDX-License-Identifier: Apache-2.0
"""A pack in a bucket that is made by tasks of the program."""

import signal
import subprocess
import time

from bucket_tools import Bucket
from cli_tools import PENSTOCK, good

MANY = ("--block-samples", "4", "--shard-bytes", "1")
N = 3


class Job:
    """A pack in a bucket of its own. Each machine has a home directory."""

    def __init__(self, server, top, source):
        self.top, self.source = top, source
        self.bucket = Bucket(server, top / "home")
        self.out = self.bucket.at("a.pen")

    def env(self, machine):
        return {**self.bucket.env, "HOME": str(self.top / machine)}

    def arguments(self, i):
        return ("pack", self.source, "-o", self.out, *MANY, "--task", f"{i}/{N}")

    def good(self, *args, machine="home"):
        return good(*args, env=self.env(machine))

    def run(self, *args):
        return self.bucket.run(*args)

    def plan(self, **more):
        return self.good("plan", self.source, "-o", self.out, *MANY, **more)

    def task(self, i, **more):
        return self.good(*self.arguments(i), "--json", **more).json()

    def finalise(self, **more):
        return self.good("finalise", self.out, "--json", **more).json()

    def start(self, *args, machine="home"):
        return subprocess.Popen([PENSTOCK, *map(str, args)], env=self.env(machine),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def names(self):
        pages = self.bucket.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket.name, Prefix="a.pen/")
        return [o["Key"][6:] for page in pages for o in page.get("Contents", ())]

    def body(self, name):
        key = f"a.pen/{name}"
        return self.bucket.client.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()

    def tree(self):
        return {name: self.body(name) for name in self.names()}

    def shards(self):
        return [name for name in self.names() if name.endswith(".shard")]

    def left(self, machine="home"):
        """What is left on a machine."""
        cache = self.top / machine / ".cache" / "penstock"
        return sorted(p.name for p in cache.iterdir()) if cache.exists() else []

    def stop_at(self, process, shards):
        """Stops it when there are so many shards more than at the start, or when it ends. It stands
        still while the store is asked."""
        before, deadline = len(self.shards()), time.monotonic() + 60
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            if len(self.shards()) - before >= shards:
                break
            process.send_signal(signal.SIGCONT)
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def go_on(self, process):
        process.send_signal(signal.SIGCONT)

    def kill_at(self, process, shards):
        self.stop_at(process, shards)
        process.kill()
        process.wait()
        process.stderr.close()
