# SPDX-License-Identifier: Apache-2.0
"""Where loaders read: the real folder, or the same one through clips/slow_disk.c."""

import os
import subprocess
import tempfile
import time

from common import places
from penstock.lab.loaders import environments


class Here:
    """The real disk."""

    def __init__(self, folder):
        self.root = folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def counts(self):
        return {}


def build():
    """The program, compiled when it is older than its source."""
    source, out = places.BENCH / "clips" / "slow_disk.c", places.WORK / "slow_disk"
    if out.exists() and out.stat().st_mtime > source.stat().st_mtime:
        return out
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=False, text=True,
                           capture_output=True)
    if found.returncode or not os.path.exists("/dev/fuse"):
        raise environments.Absent("a slow disk needs FUSE: apt-get install libfuse3-dev fuse3")
    out.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-o", out, source, *found.stdout.split()],
                   check=True)
    return out


class Slow:
    """A disk with one arm, simulated: every open, and every read that is not contiguous, waits."""

    def __init__(self, folder, seek_ms):
        self.folder, self.seek_us = folder, round(seek_ms * 1000)
        self.program = build()

    def __enter__(self):
        self.root = tempfile.mkdtemp(prefix="penstock-slow-")
        self.process = subprocess.Popen(
            [self.program, self.folder, str(self.seek_us), self.root, "-f"],
            stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not os.path.ismount(self.root):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise environments.Absent("the slow disk does not come up: is /dev/fuse allowed?")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", "-z", self.root], check=False,
                       stderr=subprocess.DEVNULL)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.rmdir(self.root)

    def counts(self):
        with open(os.path.join(self.root, ".counts"), encoding="utf-8") as file:
            words = file.read().split()
        return dict(zip(words[::2], map(int, words[1::2])))
