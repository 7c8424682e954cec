# SPDX-License-Identifier: Apache-2.0
"""Failing allocations and requests in plan, pack --task, finalise and gc in an object store.

Each allocation of a command is made to fail, once and from there on, in whatever library it is
made. Then the credentials expire at each of its requests. Each time the command ends with exit 0,
or with exit 1 and a message. The same command run again leaves what an undisturbed run leaves.
"""

import os
import pathlib
import re
import shutil
import signal
import sys
import time

import _program as program
from _program import Sweep, scaled

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import net_stage

BUCKET, PACK, TASKS = "packs", "a.pen", 2
OUT = f"s3://{BUCKET}/{PACK}"
SMALL = ("--block-samples", "3", "--shard-bytes", "6000")
MODULE = program.BUILD / "tests/long/libfailing_malloc.so"
MESSAGE = re.compile(r"^penstock: \S", re.M)
PUBLISHED = "the pack already exists"


class Bucket:
    """What is in the bucket, and what this machine keeps."""

    def __init__(self, server, top):
        self.server, self.top, self.client = server, top, server.boto3(retries=5)

    def env(self, **more):
        return self.server.environment(HOME=str(self.top / "home"), **more)

    def names(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET,
                                                                      Prefix=f"{PACK}/")
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def tree(self):
        return {name: self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
                for name in self.names()}

    def restore(self, tree):
        for name in self.names():
            self.client.delete_object(Bucket=BUCKET, Key=name)
        for name, body in tree.items():
            self.client.put_object(Bucket=BUCKET, Key=name, Body=body)
        shutil.rmtree(self.top / "home", ignore_errors=True)


class Command:
    """A command, what is in the bucket before it, and what after it."""

    def __init__(self, bucket, name, command):
        self.bucket, self.name, self.command = bucket, name, command
        self.before = bucket.tree()
        bucket.server.control(reset=True)
        code, text = program.run(*command, env=self.failing(0, False))
        if code != 0:
            sys.exit(f"cannot go on: {name}: {text}")
        self.requests = bucket.server.counts()["total"]
        self.after = bucket.tree()
        with open(bucket.top / "count", encoding="ascii") as f:
            self.calls = int(f.read())

    def failing(self, at, ever):
        more = {"FAIL_AT": str(at)} if at else {}
        if ever:
            more["FAIL_EVER"] = "1"
        # libcrypto crashes when an allocation fails while it initialises itself.
        return self.bucket.env(LD_PRELOAD=str(MODULE), FAIL_COUNT=str(self.bucket.top / "count"),
                               FAIL_SPARE="libcrypto", **more)

    def expiring(self, requests):
        """Credentials for so many requests."""
        key = {"id": f"AKID{os.urandom(8).hex().upper()}", "secret": "short", "requests": requests}
        self.bucket.server.control(key=key)
        return self.bucket.env(AWS_ACCESS_KEY_ID=key["id"], AWS_SECRET_ACCESS_KEY=key["secret"])

    def try_point(self, sweep, what, env):
        self.bucket.restore(self.before)
        sweep.n += 1
        code, text = program.run(*self.command, env=env, limit=30)
        # libcurl 7.88 divides by zero after it had no memory for the transfers of a socket.
        is_curl = code == -signal.SIGFPE and "LD_PRELOAD" in env
        if not is_curl and (code not in (0, 1) or (code == 1 and not MESSAGE.search(text))):
            sweep.complain(f"{what}: exit {code}, {text!r}")
            return
        if code:
            code, text = program.run(*self.command, env=self.bucket.env())
        if code != 0 and PUBLISHED not in text:
            sweep.complain(f"{what}: run again: {text}")
            return
        if self.command[0] == "finalise":
            self.remove_rest(sweep, what)
        wrong = program.difference(self.after, self.bucket.tree())
        if wrong:
            sweep.complain(f"{what}: {wrong}")

    def remove_rest(self, sweep, what):
        """Of a pack that is published: gc removes it, or if the plan is left as well, finalise."""
        code, text = program.run("gc", OUT, env=self.bucket.env())
        if code == 75:
            code, text = program.run("finalise", OUT, env=self.bucket.env())
        if code != 0:
            sweep.complain(f"{what}: not removed: {text}")

    def sweep_memory(self):
        sweep, begin = Sweep(f"failing malloc in {self.name}"), time.monotonic()
        step = max(1, self.calls // scaled(400, 3))
        for ever in (False, True):
            for at in range(1 + step * ever // 2, self.calls + 1, step):
                self.try_point(sweep, f"allocation {at}{' and later' if ever else ''}",
                               self.failing(at, ever))
        sweep.end(f"{self.calls} allocations, {sweep.n} points, {time.monotonic() - begin:.1f} s")

    def sweep_requests(self):
        sweep, begin = Sweep(f"expiring credentials in {self.name}"), time.monotonic()
        for n in range(0, self.requests, scaled(1, 4)):
            self.try_point(sweep, f"after {n} requests", self.expiring(n))
        sweep.end(f"{self.requests} requests, {sweep.n} points, {time.monotonic() - begin:.1f} s")


def main():
    with program.scratch() as scratch, net_stage.S3Server(buckets=[BUCKET]) as server:
        top = pathlib.Path(scratch)
        program.make_inputs("folder", top / "in", 0, 16)
        bucket, sources = Bucket(server, top), (top / "in", "-o", OUT, *SMALL)
        commands = [("plan", ("plan", *sources)),
                    *((f"task {i}", ("pack", *sources, "--threads", "1", "--task",
                                       f"{i}/{TASKS}"))
                      for i in range(TASKS)),
                    ("finalise", ("finalise", OUT))]
        made = [Command(bucket, *c) for c in commands]
        bucket.restore(made[-1].before)
        made.append(Command(bucket, "gc --abandon", ("gc", "--abandon", OUT)))
        for path in sorted((top / "in").rglob("*.jpg")):
            bucket.client.put_object(Bucket=BUCKET, Key=f"src/{path.relative_to(top / 'in')}",
                                     Body=path.read_bytes())
        server.control(listing={"keys": 3})  # pages of a prefix are fetched side by side
        bucket.restore({})
        made.append(Command(bucket, "plan of a prefix",
                            ("plan", f"s3://{BUCKET}/src", *sources[1:])))
        for command in made:
            if command.name != "task 0":
                command.sweep_memory()
                command.sweep_requests()
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
