# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of processes that bring one pack into the memory they share.

Those that are left finish it, read the right bytes, and share one memory; when they have ended too,
the kernel lists no name and no memory of ours any more.
"""

import contextlib
import hashlib
import os
import random
import select
import signal
import sys
import tempfile
import time

from _net import net_stage
from _package import penstock, scaled
from _program import Sweep

import preload_tools  # isort: skip

CHILDREN, PATIENCE_S = 3, 60
N, SIZE = 160, 200_000


def make(path):
    dice = random.Random(8)
    with penstock.Writer(path, {"data": "bytes"}, block_samples=8, shard_size="9MiB") as writer:
        for i in range(N):
            writer.add(key=str(i), data=dice.randbytes(SIZE))


def digest(pack):
    found = hashlib.sha256()
    for sample in pack:
        found.update(sample["data"])
    return found.hexdigest()


class Child:
    """A forked process: preloads, reads everything, says what it read and how long the first took,
    and waits."""

    def __init__(self, where, options):
        self.out, out = os.pipe()
        hold, self.hold = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.hold)
            began = time.monotonic()
            try:
                with penstock.open(where, options, preload=True) as pack:
                    seconds = time.monotonic() - began
                    os.write(out, f"{digest(pack)} {seconds:.3f}".encode())
                    os.read(hold, 1)
            except BaseException as error:
                os.write(out, f"{type(error).__name__}: {error}".encode())
            os._exit(0)
        os.close(out)
        os.close(hold)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def said(self):
        ready, _, _ = select.select([self.out], [], [], PATIENCE_S)
        return os.read(self.out, 4096).decode() if ready else "nothing"

    def end(self):
        """Lets it end by itself."""
        with contextlib.suppress(OSError):
            os.write(self.hold, b".")
        os.waitpid(self.pid, 0)

    def close(self):
        os.close(self.out)
        os.close(self.hold)


def one_round(where, options, expected, length, dice, complain):
    """The number of kills."""
    children = [Child(where, options) for _ in range(CHILDREN)]
    victims = dice.sample(children, dice.randrange(1, CHILDREN))
    began = time.monotonic()
    for when, victim in sorted((dice.random() * length, i) for i in range(len(victims))):
        time.sleep(max(0.0, began + when - time.monotonic()))
        victims[victim].kill()
    left = [child for child in children if child not in victims]
    for child in left:
        said = child.said()
        if said.split()[0] != expected:
            complain(f"read {said}")
    pids = {str(child.pid) for child in left}
    inodes = {inode for pid, inode in preload_tools.memory_files() if pid in pids}
    if len(inodes) != 1:
        complain(f"{len(inodes)} memories for {len(left)} processes")
    for child in left:
        child.end()
    for child in children:
        child.close()
    return len(victims)


def sweep(name, where, options, expected, n, dice):
    result = Sweep(f"kill -9 while a pack is preloaded from {name}")
    with penstock.open(where, options) as pack:
        pack_id = pack.id
    began = time.monotonic()
    whole = Child(where, options)
    said = whole.said().split()
    if said[0] != expected:
        sys.exit(f"cannot go on: the pack cannot be read: {said}")
    length = float(said[1]) * 1.2
    whole.end()
    whole.close()
    while result.n < n:
        result.n += one_round(where, options, expected, length, dice, result.complain)
        if preload_tools.names(pack_id):
            result.complain("names are left")
        if any(pid != str(os.getpid()) for pid, _ in preload_tools.memory_files() if mine(pid)):
            result.complain("memory is left")
    result.end(f"{result.n} kills in the first {length * 1000:.0f} ms, "
               f"{time.monotonic() - began:.1f} s")


def mine(pid):
    """Is it a child of ours?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return int(f.read().rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False


def main():
    dice = random.Random(4)
    with tempfile.TemporaryDirectory(prefix="penstock-preload-") as top:
        disk = os.path.join(top, "packs", "train.pen")
        os.mkdir(os.path.dirname(disk))
        make(disk)
        with penstock.open(disk) as pack:
            expected = digest(pack)
        sweep("a disk", disk, None, expected, scaled(250, 10), dice)
        with net_stage.S3Server(buckets=["packs"], directory=top,
                                chaos="delay=1,delay_ms=40") as server:
            options = {"endpoint": server.url, "region": server.region, "key_id": server.key_id,
                       "secret": server.secret}
            sweep("a store", "s3://packs/train.pen", options, expected, scaled(250, 10), dice)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
