# SPDX-License-Identifier: Apache-2.0
"""One loader, and a training step that sleeps, in a process of its own; both leave a trace.

    idle_turn.py MODULE < task     the answer is one line of JSON

The clock of the trace starts when all is imported. penstock's loader writes its spans itself. What
DataLoader and its workers do is traced here, with the same names.
"""

import json
import multiprocessing.util
import pathlib
import sys
import time

import numpy as np


def traced_dataset(task, penstock):
    """The objects of remote/sides/objects.py; their workers write a trace each."""
    from remote.sides import objects

    class Traced(objects.Objects):
        def fetch(self, i):
            with penstock.span("request"):
                return super().fetch(i)

        def sample(self, data, i):
            with penstock.span("decode"):
                return super().sample(data, i)

        def __getitems__(self, numbers):
            with penstock.span("get_batch"):
                return super().__getitems__(numbers)

    return Traced(*objects.arguments(task))


def trace_worker(path, penstock, number):
    """Of DataLoader: called in each worker when it starts."""
    trace = penstock.trace(path.format(number), samples_per_second=0)
    multiprocessing.util.Finalize(None, trace.close, exitpriority=1)


def dataloader(task, penstock):
    """Yields the ids of each batch."""
    import functools

    import torch

    torch.set_num_threads(1)
    begin = functools.partial(trace_worker, task["worker_trace"], penstock)
    loader = torch.utils.data.DataLoader(
        traced_dataset(task, penstock), batch_size=task["batch"], shuffle=True,
        num_workers=task["workers"], worker_init_fn=begin)
    with penstock.span("next_data"):
        batches = iter(loader)
        _, ids = next(batches)
    while True:
        yield ids.numpy()
        with penstock.span("next_data"):
            _, ids = next(batches)


def penstock_loader(task, penstock):
    from remote.sides.penstock import PIPELINE

    with penstock.Loader(
            task["address"], task["batch"], pipeline=PIPELINE.format(size=task["size"]),
            order="shuffle", output=task["output"], memory=task["memory"],
            return_info=True) as loader:
        for batch in loader:
            info = batch[-1]
            yield np.array(info.samples)[np.array(info.valid)]


LOADERS = {"objects": dataloader, "penstock": penstock_loader}


def train(batches, task, penstock):
    """The ids of the batches until the time is up and each worker has brought as many."""
    found, end = [], time.monotonic() + task["seconds"]
    while time.monotonic() < end or len(found) % task["group"]:
        found.append(np.array(next(batches), dtype=np.int64))  # a copy: it must not hold the batch
        with penstock.span("run_batch"):
            time.sleep(task["step_ms"] / 1000)
    return np.concatenate(found)


def take_turn(name, task):
    from remote.sides.penstock import package
    from remote.turn import once_only

    penstock = package(task)
    with penstock.trace(task["trace"]) as trace:
        batches = LOADERS[name](task, penstock)
        ids = train(batches, task, penstock)
    batches.close()  # DataLoader's workers end, and close their traces
    return {"samples": len(ids), "events": trace.events, "dropped": trace.dropped,
            **once_only(ids, task["samples"], False)}


def main():
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    import common  # noqa: F401  the path of the next
    from answers import Answers

    Answers().write_result(take_turn, sys.argv[1], json.load(sys.stdin))


if __name__ == "__main__":
    main()
