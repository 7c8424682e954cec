# SPDX-License-Identifier: Apache-2.0
"""penstock, from the build directory's package: the same loader with a path or an address."""

import importlib
import os
import sys

import numpy as np

from remote import cores

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
    """The stock has packed already."""


def warm(task):
    package(task)


def opened(task, penstock):
    return penstock.Loader(
        task["pack"] if task["options"]["place"] == "local" else task["address"], task["batch"],
        pipeline=PIPELINE.format(size=task["size"]), order="block", threads=1,
        output=task["output"], memory=task["memory"], return_info=True, drop_last=False)


def batches(task):
    pinned = task["decode_core"] is not None
    if pinned:
        # All threads of the library that follow inherit it; the one that decodes is moved.
        cores.pin_process(os.getpid(), task["other_core"])
    with opened(task, package(task)) as loader:
        passing = iter(loader)
        if pinned and cores.pin_named(os.getpid(), "pen-decode", task["decode_core"]) != 1:
            raise RuntimeError("expected one thread called pen-decode")
        for batch in passing:
            info = batch[-1]
            yield np.array(info.samples)[np.array(info.valid)]
