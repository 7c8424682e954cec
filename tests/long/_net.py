# SPDX-License-Identifier: Apache-2.0
"""What the long tests of remote packs share: a pack, the reader program, and what it says."""

import hashlib
import os
import random
import subprocess
import sys

from _package import BUILD, ROOT, penstock

for folder in ("net", "python"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

import net_stage  # noqa: E402

READER = BUILD / "tests" / "net" / "read_remote"
ODD_NAMES = BUILD / "tests" / "net" / "libodd_names.so"


def make_pack(path, n=96, seed=1, size=6000):
    """Shards of several blocks, longer than what is read of one when it is opened."""
    dice = random.Random(seed)
    with penstock.Writer(path, {"data": "bytes", "label": "i64"}, block_samples=8,
                         shard_size=150000) as writer:
        for i in range(n):
            writer.add(key=f"{seed}-{i}", data=dice.randbytes(size + dice.randrange(500)), label=i)


class Told:
    """What the reader said."""

    def __init__(self, text, code, errors=""):
        self.samples = {}
        self.said = {"status": "CRASHED", "message": f"exit {code}: {errors}"}
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "sample":
                number, _, digest = rest.partition(" ")
                self.samples.setdefault(int(number), []).append(digest)
            else:
                self.said[word] = rest
        if code != 0:
            self.said["status"] = "CRASHED"

    status = property(lambda self: self.said["status"])
    message = property(lambda self: self.said["message"])
    hash = property(lambda self: self.said.get("hash"))
    seconds = property(lambda self: float(self.said.get("seconds", "inf")))
    settled = property(lambda self: float(self.said.get("settled", "inf")))


def reader_command(address, **options):
    return [str(READER), str(address), *(f"{name}={value}" for name, value in options.items())]


def environment(preload=None, **more):
    """No keys, no proxies, no configuration of the user's, but what is given."""
    env = net_stage.clean_environment(**{k: str(v) for k, v in more.items()})
    if preload:
        env["LD_PRELOAD"] = str(preload)
    return env


def read(address, env=None, limit=60, **options):
    """Reads a pack in another process."""
    try:
        done = subprocess.run(
            reader_command(address, **options), env=env or environment(), timeout=limit,
            capture_output=True, stdin=subprocess.DEVNULL, check=False,
        )
    except subprocess.TimeoutExpired:
        return Told("", -9, "hangs")
    return Told(done.stdout.decode("utf-8", "replace"), done.returncode,
                done.stderr.decode("utf-8", "replace"))


def digest(data):
    return hashlib.sha256(data).hexdigest()


def processors():
    return len(os.sched_getaffinity(0))
