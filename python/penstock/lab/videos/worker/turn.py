#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process of one loader of videos.

    turn.py MODULE          commands and answers are lines of JSON on stdin and stdout

Runs in the environment of the loader, so it uses nothing but the standard library and NumPy.
"""

import importlib
import pathlib
import sys
import time


def bytes_read():
    """By system calls of this process, from any file."""
    text = pathlib.Path("/proc/self/io").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("rchar")))


class Turns:
    def __init__(self, name):
        self.module = importlib.import_module(f"readers.{name}")
        self.reader = self.task = None

    def ready(self):
        return {"versions": self.module.versions()}

    def open(self, task):
        """For all turns: what opening takes is not counted."""
        self.task, self.reader = task, self.module.Reader(task)
        return {}

    def read_so_far(self):
        remote = self.reader.bytes
        return bytes_read() if remote is None else remote

    def turn(self, epoch):
        """An epoch, all of it."""
        before, samples = self.read_so_far(), 0
        began = time.perf_counter()
        for batch in self.reader.batches(epoch):
            samples += len(batch)
        seconds = time.perf_counter() - began
        if samples != self.task["clips"]:
            raise ValueError(f"expected {self.task['clips']} clips, found {samples}")
        return {"seconds": seconds, "samples": samples, "bytes": self.read_so_far() - before}

    def check(self, task, file):
        """Mean and largest difference of the first batch from the pixels of a file, of 255."""
        import numpy as np

        reader, want = self.module.Reader(task), np.load(file)
        have = next(iter(reader.batches(0))).astype(np.int16)
        reader.close()
        if have.shape != want.shape:
            raise ValueError(f"expected a batch {list(want.shape)}, found {list(have.shape)}")
        apart = np.abs(have - want)
        return {"mean": float(apart.mean()), "max": int(apart.max())}


def main():
    # The folder of this program is in the path; that of the images' loaders has the answers.
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "loaders" / "worker"))
    from answers import serve

    serve(Turns, sys.argv[1])


if __name__ == "__main__":
    main()
