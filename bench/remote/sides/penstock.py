# SPDX-License-Identifier: Apache-2.0
"""penstock, from the build directory's package: the same loader with a path or an address."""

import importlib
import os
import sys

import numpy as np
import torch

from remote import cores

PIPELINE = "decode | random_resized_crop {size} | hflip | tensor u8"


def package(task):
    if f"{task['build']}/python" not in sys.path:
        sys.path.insert(0, f"{task['build']}/python")
    return importlib.import_module("penstock")


def versions(task):
    return {"penstock": package(task).__version__, "torch": torch.__version__}


def prepare(task):
    """The stock has packed already."""


def opened(task, penstock):
    return penstock.Loader(
        task["pack"] if task["options"]["place"] == "local" else task["address"], task["batch"],
        pipeline=PIPELINE.format(size=task["size"]), order="block", threads=1, output="torch",
        return_info=True, drop_last=False, **task["options"].get("loader", {}))


def batches(task):
    torch.set_num_threads(1)
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
