# SPDX-License-Identifier: Apache-2.0
"""penstock, from the build directory's package: the same loader with a path or an address."""

import importlib
import os
import pathlib
import sys

import numpy as np
from sides.tars import write_tars

from remote import cores

TAR_SAMPLES = 500
PIPELINE = "decode | random_resized_crop {size} | hflip | tensor u8"


def package(task):
    """With what it gives batches to; imported before the clock starts."""
    if f"{task['build']}/python" not in sys.path:
        sys.path.insert(0, f"{task['build']}/python")
    if task["output"] == "torch":
        importlib.import_module("torch").set_num_threads(1)
    return importlib.import_module("penstock")


def versions(task):
    found = {"penstock": package(task).__version__}
    if task["output"] == "torch":
        found["torch"] = importlib.import_module("torch").__version__
    return found


def prepare(task):
    """The stock packs and indexes."""
    if task["prefix"] == "tars":
        write_tars(task["out"], task["files"], max(1, task["samples"] // TAR_SAMPLES))


def warm(task):
    package(task)


def opened(task, penstock):
    """The pack; of a remote one with a cache, or in memory that others have."""
    options = task["options"]
    if options["place"] == "index":
        return penstock.open(task["over"], roots=[f"s3://{task['bucket']}"])
    if options["place"] == "local":
        return penstock.open(task["pack"])
    if options.get("preload"):
        return penstock.open(task["address"], preload=True)
    if "cache" in task:
        return penstock.open(task["address"], cache=task["cache"], cache_bytes=task["cache_bytes"])
    return penstock.open(task["address"])


def loading(task, penstock, pack):
    return penstock.Loader(
        pack, task["batch"], pipeline=PIPELINE.format(size=task["size"]), shuffle=True,
        shuffle_buffer=task["shuffle_buffer"], threads=1, output=task["output"],
        memory=task["memory"], return_info=True, drop_last=False)


class Watch:
    """What the pack did in a turn, opening it not among that."""

    def __init__(self, pack):
        self.pack = pack
        self.opening_bytes = pack.remote_stats()["bytes"]
        self.begun = None  # what its threads had used when the first batch came
        self.last = None   # all of it, when the epoch ended by itself

    def begin(self):
        if self.begun is None:
            self.begun = cores.seconds_of(os.getpid())

    def end(self):
        """Before its threads are gone."""
        used = cores.since(self.begun or {}, cores.seconds_of(os.getpid()))
        self.last = {**self.figures(), "threads": used}

    def figures(self):
        cache, there = self.pack.cache_stats(), self.pack.preloaded
        blocks = cache["hits"] + cache["misses"]
        return {"opening_bytes": self.opening_bytes,
                "network_bytes": self.pack.remote_stats()["bytes"] - self.opening_bytes,
                "hits": cache["hits"] / blocks if blocks else None, "cache": cache,
                "private_bytes": private_bytes(),
                "was_there": there.was_there if there else None,
                "preload_read_bytes": there.read_bytes if there else None}


def private_bytes():
    """Memory that this process has for itself."""
    text = pathlib.Path("/proc/self/smaps_rollup").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines()[1:])
    return sum(int(row[1]) * 1024 for row in rows if row[0].startswith("Private_"))


watches = []  # of this process's turns


def ending():
    """Of the time when the loader was still open."""
    return watches[-1].last or watches[-1].figures()


def make_ready(task):
    """What turns find there: a cache through which an epoch went, or all of the pack in memory,
    for as long as what this gives is open. With it, what that did."""
    penstock = package(task)
    pack = opened(task, penstock)
    if "cache" in task:
        with penstock.Loader(pack, task["batch"], pipeline={"label": "tensor i64"}, order="shuffle",
                             output="numpy", threads=1) as loader:
            for _ in loader:
                pass
    return pack, Watch(pack).figures()


def batches(task):
    pinned = task["decode_core"] is not None
    if pinned:
        # All threads of the library that follow inherit it; the one that decodes is moved.
        cores.pin_process(os.getpid(), task["client_core"])
    penstock = package(task)
    with opened(task, penstock) as pack:
        watch = Watch(pack)
        watches.append(watch)
        with loading(task, penstock, pack) as loader:
            loader.set_epoch(task["options"].get("epoch", 0))
            passing = iter(loader)
            if pinned and cores.pin_named(os.getpid(), "pen-decode", task["decode_core"]) != 1:
                raise RuntimeError("expected one thread called pen-decode")
            for batch in passing:
                info = batch[-1]
                watch.begin()
                yield np.array(info.samples)[np.array(info.valid)]
            watch.end()
