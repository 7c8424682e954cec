#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process: prepares one loader and runs epochs when it is told to.

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
        self.module, self.side, self.task = importlib.import_module(f"loaders.{module}"), None, None

    def prepare(self, task):
        began = time.perf_counter()
        self.task = task
        task["files"] = pathlib.Path(task["list"]).read_text(encoding="utf-8").splitlines()
        self.side = self.module.Side(task)
        bytes_stored = sum(os.path.getsize(file) for file in self.side.stored)
        return {"seconds": time.perf_counter() - began, "versions": self.side.versions,
                "stored_mb": round(bytes_stored / 1e6, 1), "notes": getattr(self.side, "notes", [])}

    def first(self, task):
        """Seconds from nothing to the first batch; what is prepared is among them."""
        began = time.perf_counter()
        self.prepare(task)
        next(iter(self.side.epoch()))
        return {"seconds": time.perf_counter() - began}

    def one_pass(self):
        """Seconds, and the ids as they came."""
        ids = []
        began = time.perf_counter()
        for some in self.side.epoch():
            some = some.numpy() if hasattr(some, "numpy") else some
            ids.append(np.array(some, dtype=np.int64))  # a copy: it must not hold the batch
        seconds = time.perf_counter() - began
        return seconds, np.concatenate(ids)

    def turn(self, passes):
        """`passes` whole epochs; what comes between them is not counted."""
        total, samples = 0.0, 0
        wrong = {"missing": 0, "again": 0, "strange": 0}
        for _ in range(passes):
            seconds, ids = self.one_pass()
            total += seconds
            samples += len(ids)
            for key, count in once_only(ids, len(self.task["files"])).items():
                wrong[key] = max(wrong[key], count)
        return {"seconds": total, "samples": samples, "passes": passes, **wrong}

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
    # Not this folder: its modules have the names of the packages that they are about.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    from compare.answers import serve

    serve(Worker, sys.argv[1])


if __name__ == "__main__":
    main()
