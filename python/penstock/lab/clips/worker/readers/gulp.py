# SPDX-License-Identifier: Apache-2.0
"""GulpIO2: its own adapter has written the gulp directory, its GulpDirectory reads slices."""

import importlib.metadata

import numpy as np
import torch
from gulpio2 import GulpDirectory

from . import dataset

_open = {}  # by root, in each worker


def versions():
    return {"gulpio2": importlib.metadata.version("gulpio2"), "torch": torch.__version__,
            "simplejpeg": importlib.metadata.version("simplejpeg")}


def directory(root):
    if root not in _open:
        _open[root] = GulpDirectory(f"{root}/gulp")
    return _open[root]


def read(task, key):
    gulp, stride = directory(task["root"]), task["stride"]
    first = dataset.first_frame(task, len(gulp.merged_meta_dict[key]["frame_info"]))
    frames, _ = gulp[key, slice(first, first + task["frames"] * stride, stride)]
    top, left = dataset.box(task, *frames[0].shape[:2])
    end = task["size"]
    return dataset.clip_of(np.stack([f[top : top + end, left : left + end] for f in frames]))


def batches(task):
    directory(task["root"])  # once, before the workers are made
    return dataset.batches(task, read)
