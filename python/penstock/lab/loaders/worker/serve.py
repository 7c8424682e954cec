#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process: prepares one loader and runs epochs on command.

    serve.py MODULE         commands and answers are lines of JSON on stdin and stdout

Runs in the environment of the loader, so it uses nothing but the standard library and NumPy.
"""

import importlib
import os
import pathlib
import sys
import time

import numpy as np


def once_only(ids, n):
    """How many of n ids are missing, and how many came more than once."""
    counts = np.bincount(np.asarray(ids, dtype=np.int64), minlength=n)
    return {"missing": int((counts[:n] == 0).sum()), "again": int((counts[:n] > 1).sum()),
            "strange": int(counts[n:].sum())}


class Worker:
    def __init__(self, module):
        self.module, self.side, self.task = importlib.import_module(f"sides.{module}"), None, None

    def prepare(self, task):
        began = time.perf_counter()
        self.task = task
        task["files"] = pathlib.Path(task["list"]).read_text(encoding="utf-8").splitlines()
        self.side = self.module.Side(task)
        bytes_stored = sum(os.path.getsize(file) for file in self.side.stored)
        return {"seconds": time.perf_counter() - began, "versions": self.side.versions,
                "stored_mb": round(bytes_stored / 1e6, 3), "files": self.side.stored,
                "pack": str(getattr(self.side, "pack", "")),
                "notes": getattr(self.side, "notes", [])}

    def first(self, task):
        """Seconds from nothing to the first batch; what is prepared is among them."""
        began = time.perf_counter()
        self.prepare(task)
        next(iter(self.side.epoch()))
        return {"seconds": time.perf_counter() - began}

    def one_pass(self, consumer_ms=0):
        """Seconds of the epoch and of the simulated training steps in it, waits, and ids."""
        ids, waits = [], []
        began = asked = time.perf_counter()
        for some in self.side.epoch():
            waits.append(time.perf_counter() - asked)
            some = some.numpy() if hasattr(some, "numpy") else some
            ids.append(np.array(some, dtype=np.int64))  # a copy: it must not hold the batch
            if consumer_ms:
                time.sleep(consumer_ms / 1000)
            asked = time.perf_counter()
        return time.perf_counter() - began, waits, np.concatenate(ids)

    def turn(self, passes, consumer_ms=0):
        """`passes` complete epochs; what comes between them is not counted."""
        total, samples, waits = 0.0, 0, []
        wrong = {"missing": 0, "again": 0, "strange": 0}
        for _ in range(passes):
            seconds, some, ids = self.one_pass(consumer_ms)
            total += seconds
            samples += len(ids)
            waits += some
            for key, count in once_only(ids, len(self.task["files"])).items():
                wrong[key] = max(wrong[key], count)
        found = {"seconds": total, "samples": samples, "passes": passes, "batches": len(waits),
                 "consumer_ms": consumer_ms, "idle": min(1.0, sum(waits) / total),
                 "waits": np.percentile(waits, (50, 95, 99)).tolist(), **wrong}
        if getattr(self.side, "bottleneck", None):
            found["bottleneck"] = self.side.bottleneck()
        return found

    def check(self, reference):
        """Mean and largest absolute difference from the reference's pixels."""
        want = np.load(reference).astype(np.int16)
        have = np.asarray(self.side.check())
        if have.shape != want.shape or have.dtype != np.uint8:
            raise ValueError(f"expected {want.shape} of uint8, found {have.shape} of {have.dtype}")
        difference = np.abs(have.astype(np.int16) - want)
        return {"mean": float(difference.mean()), "max": int(difference.max()),
                "images": int(want.shape[0])}


def main():
    from answers import serve  # this folder is in the path: it is that of the program

    serve(Worker, sys.argv[1])


if __name__ == "__main__":
    main()
