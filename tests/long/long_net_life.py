# SPDX-License-Identifier: Apache-2.0
"""Remote packs in trouble, through the whole stack.

A server that falls silent, one that is down for a while with many readers waiting, objects that
change while they are read.
"""

import contextlib
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
from _net import Told, environment, make_pack, net_stage, read, reader_command
from _package import Tests, encoded, painted, penstock, scaled, write_pack
from _program import scratch
from bad_server import BadServer

STALL = 1.5


# ---- a server that falls silent


def check_mute(top, behaviour, first):
    """next() raises in time and says what it waits for."""
    with BadServer(top, tls=False) as server:
        server.behave(behaviour, "/pictures.pen/", first)
        loader = penstock.Loader(server.url("/pictures.pen"), 8, shuffle=False, timeout=STALL,
                                 output="numpy", pipeline={"label": "tensor"})
        began = time.monotonic()
        try:
            for _ in loader:
                began = time.monotonic()
            raise AssertionError("the epoch came to its end")
        except penstock.Error as error:
            took, text = time.monotonic() - began, str(error)
        ending = time.monotonic()
        loader.close()
        closed = time.monotonic() - ending
    assert took <= STALL + 1, f"raised after {took:.2f} s"
    assert closed <= 2, f"closing took {closed:.2f} s"
    for part in ("shard", "offset", "attempt", "last:", "idle", "reading sample"):
        assert part in text or (part == "reading sample" and "locating" in text), (part, text)
    return f"raised after {took:.2f} s: {text}"


# ---- down for a while


def rates(server, first, last):
    """Requests in each second of the server's clock from first to before last."""
    seconds = [n for n, _ in server.counts()["seconds"]]
    return [seconds[s] if s < len(seconds) else 0 for s in range(first, last)]


def check_storm(top, clients, outage):
    """Normal, down, back: requests are counted in each second."""
    warm, after = 4, 6
    with net_stage.S3Server(directory=top) as server:
        env = environment(**server.env)
        server.control(reset=True)
        began = time.monotonic()
        total = warm + outage + after
        readers = [
            subprocess.Popen(reader_command("s3://bucket/pack.pen", threads=4, seconds=total),
                             env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            for _ in range(clients)
        ]
        time.sleep(warm - (time.monotonic() - began))
        server.control(outage=outage)
        time.sleep(outage + after)
        for reader in readers:
            reader.terminate()
            reader.wait()
        normal = rates(server, warm - 2, warm)
        down = rates(server, warm + outage // 2, warm + outage - 1)
        back = rates(server, warm + outage, warm + outage + 5)
        spent = rates(server, warm, warm + outage)
    usual = sum(normal) / len(normal)
    assert usual >= 100, f"only {usual:.0f} requests a second before"
    steady = sum(down) / max(1, len(down))
    assert steady <= 0.10 * usual, f"{steady:.1f} a second while down, {usual:.0f} before"
    # Readers that wait for too long would reach a tenth; the speed of the machine itself drifts.
    assert max(back) >= 0.5 * usual, f"after it {back}, {usual:.0f} a second before"
    when = next(i for i, n in enumerate(back) if n >= 0.5 * usual)
    return (f"{clients} clients, {usual:.0f} requests a second; down for {outage} s: {sum(spent)} "
            f"in all, {steady:.1f} a second in its second half; half the rate in second {when + 1}")


# ---- objects that change while they are read


class Reader:
    """Goes on by one sample when it is told to."""

    def __init__(self, address, env):
        self.child = subprocess.Popen(
            reader_command(address, step=1, deadline_ms=2000, outage_ms=4000), env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.text = ""

    def step(self):
        """True while there is more to come."""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], 60)
        line = self.child.stdout.readline() if ready else ""
        self.text += line
        return line.startswith("sample ")

    def end(self):
        """It has ended, or hangs; then it is killed."""
        killer = threading.Timer(60, self.child.kill)
        killer.start()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.text += self.child.stdout.read()
        errors = self.child.stderr.read()
        code = self.child.wait()
        killer.cancel()
        return Told(self.text, code, errors)


class Nemesis:
    """What it does is drawn; `harm` is set when the bytes that were opened are there no more."""

    def __init__(self, dice, server, store, reader):
        self.dice, self.server, self.store, self.reader = dice, server, store, reader
        self.harm, self.did = False, []

    def shards(self):
        found = []
        for folder, _, files in os.walk(f"{self.store}/bucket/pack.pen"):
            found += [os.path.join(folder, f) for f in files if f.endswith(".shard")]
        return sorted(found)

    def put(self, path, data):
        """As a store does it: another object under the name, whole, at once."""
        new = f"{self.store}/new"
        with open(new, "wb") as f:
            f.write(data)
        os.replace(new, path)

    def overwrite(self):
        path = self.dice.choice(self.shards())
        with open(path, "rb") as f:
            data = bytearray(f.read())
        for _ in range(20):
            data[self.dice.randrange(len(data))] ^= 1 << self.dice.randrange(8)
        self.put(path, bytes(data))
        self.harm = True

    def swap(self):
        """Two shards change places."""
        if len(self.shards()) < 2:
            return
        paths = self.dice.sample(self.shards(), 2)
        with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
            first, second = a.read(), b.read()
        self.put(paths[0], second)
        self.put(paths[1], first)
        self.harm = True

    def delete(self):
        os.unlink(self.dice.choice(self.shards()))
        self.harm = True

    def other_version(self):
        """Another pack is published at the same place: the manifest alone is replaced."""
        with open(f"{self.store}/other.pen/manifest", "rb") as f:
            self.put(f"{self.store}/bucket/pack.pen/manifest", f.read())

    def same_again(self):
        """The same bytes are stored once more."""
        path = self.dice.choice(self.shards())
        with open(path, "rb") as f:
            self.put(path, f.read())

    def clock(self):
        self.server.control(clock=self.dice.choice((-86400, 86400, 3600, 0)))

    def pause(self):
        self.reader.child.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.random() * 0.3)
        self.reader.child.send_signal(signal.SIGCONT)

    def outage(self):
        self.server.control(outage=self.dice.random())

    def act(self):
        if not self.shards():
            return
        mild = (self.other_version, self.same_again, self.clock, self.pause, self.outage)
        hard = (self.overwrite, self.swap, self.delete)
        what = self.dice.choice(mild + (hard if self.dice.random() < 0.5 else ()))
        self.did.append(what.__name__)
        what()


def check_history(told, right, nemesis):
    """No sample lost, none twice, none of other bytes; no error without a reason."""
    story = f"after {nemesis.did}: {told.status} {told.message}"
    for number, digests in told.samples.items():
        assert digests == right.samples[number], f"sample {number} is wrong, {story}"
    assert sorted(told.samples) == list(range(len(told.samples))), f"samples are missing, {story}"
    if told.status == "OK":
        assert told.hash == right.hash and len(told.samples) == len(right.samples), story
        return
    # A stored object's ETag is its bytes' here, as in S3 without encryption: the same is the same.
    assert nemesis.harm, f"no harm was done, {story}"
    assert told.status in ("E_CHANGED", "E_NOT_FOUND", "E_CORRUPT"), story


def check_one(seed, top, right):
    dice = random.Random(seed)
    store = f"{top}/store-{seed}"
    shutil.copytree(f"{top}/pack.pen", f"{store}/bucket/pack.pen")
    shutil.copytree(f"{top}/other.pen", f"{store}/other.pen")
    with net_stage.S3Server(buckets=("bucket",), directory=store) as server:
        reader = Reader("s3://bucket/pack.pen", environment(**server.env))
        nemesis = Nemesis(dice, server, store, reader)
        moments = sorted(dice.randrange(90) for _ in range(1 + dice.randrange(3)))
        steps = 0
        while reader.step():
            steps += 1
            while moments and moments[0] <= steps:
                moments.pop(0)
                nemesis.act()
        told = reader.end()
    shutil.rmtree(store)
    check_history(told, right, nemesis)
    return told.status


def check_histories(top, seeds):
    right = read(f"{top}/pack.pen")
    statuses = {}
    for seed in seeds:
        try:
            status = check_one(seed, top, right)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        statuses[status] = statuses.get(status, 0) + 1
    told = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    return f"{len(seeds)} seeds: {told}"


def main():
    tests = Tests("remote packs")
    with scratch() as top:
        make_pack(f"{top}/pack.pen")
        make_pack(f"{top}/other.pen", seed=2)
        rng = np.random.default_rng(3)
        pictures = [encoded(painted(rng, 48, 48)) for _ in range(64)]
        write_pack(f"{top}/pictures.pen", pictures, block_samples=8).close()
        os.makedirs(f"{top}/bucket")
        shutil.copytree(f"{top}/pack.pen", f"{top}/bucket/pack.pen")
        for behaviour in scaled(("headers_none_stall", "body_stall", "body_drip"),
                                ("headers_none_stall",)):
            # Requests of its one shard: the manifest, the end of the shard, blocks.
            tests.run(f"mute server ({behaviour})", check_mute, top, behaviour, 3)
        tests.run("no storm", check_storm, top, scaled(64, 8), scaled(30, 4))
        tests.run("histories", check_histories, top, range(scaled(200, 8)))
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
