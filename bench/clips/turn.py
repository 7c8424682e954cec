#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One turn of one loader of clips, in a process of its own.

    turn.py MODULE < task     the answer is one line of JSON

do = fetch   takes `batches` batches; the clock starts when all is imported, before the loader is
             made
do = train   an epoch with a consumer that takes `step` seconds for each batch: Time and Data
do = check   the first batch goes to the file `save`
"""

import importlib
import json
import os
import pathlib
import sys
import time


def processor():
    """Seconds of this process and of all its children that ended."""
    return sum(os.times()[:4])


def fetch(batches, task, began):
    first = last = None
    count = 0
    for video in batches:
        last = time.perf_counter()
        first = first or last
        count += 1
        shape = list(video.shape)
        if count == task["batches"]:
            break
    if count < task["batches"]:
        raise ValueError(f"expected {task['batches']} batches, found {count}")
    return {"seconds": last - began, "first_seconds": first - began, "batches": count,
            "shape": shape}


def train(batches, task, began):
    data, end = [], began
    for _ in batches:
        data.append(time.perf_counter() - end)
        time.sleep(task["step"])
        end = time.perf_counter()
    return {"seconds": end - began, "first_seconds": data[0], "batches": len(data),
            "data_seconds": sum(data), "data_later": sum(data[1:])}


def check(batches, task, _began):
    import numpy as np

    first = next(batches)
    np.save(task["save"], first.numpy())
    return {"shape": list(first.shape)}


def do_task(name, task):
    module = importlib.import_module(f"clips.sides.{name}")
    found = {"versions": module.versions(task)}
    before, began = processor(), time.perf_counter()
    batches = module.batches(task)
    found.update({"fetch": fetch, "train": train, "check": check}[task["do"]](batches, task, began))
    batches.close()
    return {"cpu": processor() - before, **found}


def main():
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    import common  # noqa: F401  the path of the next
    from answers import Answers

    Answers().write_result(do_task, sys.argv[1], json.load(sys.stdin))
    os._exit(0)  # threads and children of some loaders do not end by themselves


if __name__ == "__main__":
    main()
