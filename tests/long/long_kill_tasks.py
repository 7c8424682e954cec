# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of plan, pack --task and finalise in an object store.

Each round makes one pack by tasks. Commands are killed, run again on the same machine or on another
one, and now and then twice at once. In the end the pack has the bytes of an undisturbed run, and gc
leaves no upload and no object that the pack does not name.
"""

import pathlib
import random
import subprocess
import sys
import time

import _program as program
from _program import Sweep, scaled

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import net_stage

BUCKET, PACK, TASKS = "packs", "a.pen", 3
OUT = f"s3://{BUCKET}/{PACK}"
SMALL = ("--block-samples", "3", "--shard-bytes", "6000")


class Round:
    """One pack, from the plan to the published pack."""

    def __init__(self, server, top, expected, dice):
        self.client = server.boto3(retries=5)
        self.envs = [server.environment(HOME=str(top / name)) for name in ("a", "b")]
        self.source, self.expected, self.dice = top / "in", expected, dice

    def commands(self):
        sources = (self.source, "-o", OUT, *SMALL)
        return [("plan", *sources), *(("pack", *sources, "--task", f"{i}/{TASKS}")
                                      for i in range(TASKS)), ("finalise", OUT)]

    def names(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{PACK}/")
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def tree(self):
        return {name[len(PACK) + 1:]:
                self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
                for name in self.names()}

    def clear(self):
        for name in self.names():
            self.client.delete_object(Bucket=BUCKET, Key=name)
        for env in self.envs:
            program.run("gc", "--abandon", OUT, env=env)

    def start(self, command, env):
        return subprocess.Popen([program.BIN, *map(str, command)], env=env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def kill(self, command, seconds):
        """True if it was killed; another process of the same command may run beside it."""
        env = self.dice.choice(self.envs)
        twice = self.dice.random() < 0.3
        other = self.start(command, self.envs[env is self.envs[0]]) if twice else None
        process = self.start(command, env)
        time.sleep(self.dice.random() * seconds)
        process.kill()
        killed = process.wait() == -9
        if other:
            other.wait(program.TIME_LIMIT)
        return killed

    def good(self, command, complain):
        code, text = program.run(*command, env=self.dice.choice(self.envs))
        was_complete = command[0] == "finalise" and "the pack already exists" in text
        if code != 0 and not was_complete:
            complain(f"{command[0]} {command[-1]}: {code}: {text}")

    def run(self, lengths, kills, complain):
        """Returns how many of the kills were in time."""
        n = 0
        for command, length in zip(self.commands(), lengths, strict=True):
            for _ in range(kills):
                n += self.kill(command, length)
            self.good(command, complain)
        return n

    def check(self, complain):
        code, text = program.run("gc", OUT, env=self.envs[0])
        if code != 0:
            complain(f"gc: {text}")
        wrong = program.difference(self.expected, self.tree())
        if wrong:
            complain(wrong)
        if self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
            complain("gc leaves uploads")


def undisturbed(top):
    out = top / "near.pen"
    program.must("plan", top / "in", "-o", out, *SMALL)
    for i in range(TASKS):
        program.must("pack", top / "in", "-o", out, *SMALL, "--task", f"{i}/{TASKS}")
    program.must("finalise", out)
    return {name: data for name, data in program.tree(out).items() if data is not None}


def measure(pack):
    lengths = []
    pack.clear()
    for command in pack.commands():
        begin = time.monotonic()
        code, text = program.run(*command, env=pack.envs[0])
        if code != 0:
            sys.exit(f"cannot go on: {command}: {text}")
        lengths.append(time.monotonic() - begin)
    return lengths


def main():
    sweep, want = Sweep("kill -9 at random times of tasks in a bucket"), scaled(500, 5)
    begin, rounds = time.monotonic(), 0
    with program.scratch() as scratch, net_stage.S3Server(buckets=[BUCKET]) as server:
        top = pathlib.Path(scratch)
        program.make_inputs("folder", top / "in", 0, 40)
        pack = Round(server, top, undisturbed(top), random.Random(17))
        lengths = measure(pack)
        while sweep.n < want and rounds < want:
            def complain(text, number=rounds):
                sweep.complain(f"round {number}: {text}")

            pack.clear()
            sweep.n += pack.run(lengths, scaled(2, 1), complain)
            pack.check(complain)
            rounds += 1
    sweep.end(f"{sweep.n} kills in {rounds} packs, {time.monotonic() - begin:.1f} s")
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
