# SPDX-License-Identifier: Apache-2.0
"""penstock, from the build directory's package."""

import importlib
import sys

import torch


def package(task):
    if f"{task['build']}/python" not in sys.path:
        sys.path.insert(0, f"{task['build']}/python")
    return importlib.import_module("penstock")


def versions(task):
    return {"penstock": package(task).__version__, "torch": torch.__version__}


def batches(task):
    place = "center" if task["centre"] else "random"
    loader = package(task).Loader(
        f"{task['root']}/{task['options']['pack']}", task["batch"], drop_last=True,
        order="block" if task["shuffle"] else "sequential", threads=task["threads"],
        subset=range(task["clips"]),
        pipeline=f"decode | clip {task['frames']} {task['stride']} {place} | "
                 f"center_crop {task['size']} | tensor f32 ncthw")
    with loader:
        for video, _ in loader:
            yield video
