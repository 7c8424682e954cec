# SPDX-License-Identifier: Apache-2.0
"""decord2: the same clips as H.264 files."""

import importlib.metadata

import decord
import torch

from . import dataset


def versions():
    return {"decord2": importlib.metadata.version("decord2"), "torch": torch.__version__}


def read(task, key):
    reader = decord.VideoReader(f"{task['root']}/videos/{key}.mp4", num_threads=1)
    first, stride = dataset.first_frame(task, len(reader)), task["stride"]
    numbers = list(range(first, first + task["frames"] * stride, stride))
    frames = reader.get_batch(numbers[: task["frames"]]).asnumpy()
    top, left = dataset.box(task, *frames.shape[1:3])
    return dataset.clip_of(frames[:, top : top + task["size"], left : left + task["size"]])


def batches(task):
    return dataset.batches(task, read)
