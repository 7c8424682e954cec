#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One turn of one loader, in a process of its own: nothing is warm.

    turn.py MODULE < task     the answer is one line of JSON

The clock starts when all is imported. The first batch is told by itself; what counts is from its
arrival on, until `seconds` are over or the epoch is. Workers bring their batches at about the same
time, so that a turn ends after as many batches of each. Uses nothing but the standard library and
NumPy, as it runs in the loader's environment.
"""

import importlib
import json
import os
import pathlib
import sys
import time

import numpy as np


def once_only(ids, n, whole):
    """How many came more than once; of a whole epoch also how many are missing."""
    counts = np.bincount(ids, minlength=n)
    return {"missing": int((counts[:n] == 0).sum()) if whole else 0,
            "again": int((counts[:n] > 1).sum()), "strange": int(counts[n:].sum())}


class Turn:
    def __init__(self, task):
        self.task, self.ids = task, []
        self.began = time.perf_counter()
        self.first = self.last = None
        self.threads, self.cpu = {}, 0.0

    def used(self):
        from processes import tree

        from remote import cores

        return cores.seconds_of(os.getpid()), sum(tree(os.getpid()).values())

    def is_over(self):
        if self.last - self.first < self.task["seconds"]:
            return False
        return (len(self.ids) - 1) % self.task["group"] == 0

    def take(self, ids):
        """A batch has come; whether it was the last of the turn."""
        self.last = time.perf_counter()
        self.ids.append(np.array(ids, dtype=np.int64))  # a copy: it must not hold the batch
        if self.first is None:
            self.first = self.last
            self.before = self.used()
        return self.is_over() and len(self.ids) > 1

    def answer(self, whole):
        from remote import cores

        threads, cpu = self.used()
        ids, n = np.concatenate(self.ids), self.task["samples"]
        return {"first_seconds": self.first - self.began, "seconds": self.last - self.first,
                "samples": len(ids) - len(self.ids[0]), "batches": len(self.ids) - 1,
                "cpu": cpu - self.before[1], "threads": cores.since(self.before[0], threads),
                "first_ids": self.ids[0].tolist(), "whole": whole, **once_only(ids, n, whole)}


def take_turn(module, task):
    if hasattr(module, "warm"):
        module.warm(task)
    turn, batches = Turn(task), module.batches(task)
    ended = any(turn.take(ids) for ids in batches)
    found = turn.answer(not ended)
    if hasattr(module, "ending"):
        found.update(module.ending())
    batches.close()
    return found


def do_task(name, task):
    module = importlib.import_module(f"remote.sides.{name}")
    if task["do"] == "prepare":
        module.prepare(task)
        return {"versions": module.versions(task)}
    return {**take_turn(module, task), "notes": getattr(module, "notes", [])}


def main():
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    import common  # noqa: F401  the path of the next
    from answers import Answers

    Answers().write_result(do_task, sys.argv[1], json.load(sys.stdin))
    os._exit(0)  # threads and children of some loaders do not end by themselves


if __name__ == "__main__":
    main()
