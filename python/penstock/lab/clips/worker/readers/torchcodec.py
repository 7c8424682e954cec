# SPDX-License-Identifier: Apache-2.0
"""torchcodec: the same clips as H.264 files, without a scan of the file (approximate seeks)."""

import importlib.metadata

import torch
from torchcodec.decoders import VideoDecoder

from . import dataset


def versions():
    return {"torchcodec": importlib.metadata.version("torchcodec"), "torch": torch.__version__}


def read(task, key):
    decoder = VideoDecoder(f"{task['root']}/videos/{key}.mp4", dimension_order="NHWC",
                           num_ffmpeg_threads=1, seek_mode="approximate")
    first, stride = dataset.first_frame(task, len(decoder)), task["stride"]
    numbers = list(range(first, first + task["frames"] * stride, stride))
    frames = decoder.get_frames_at(numbers[: task["frames"]]).data
    top, left = dataset.box(task, *frames.shape[1:3])
    return dataset.clip_of(frames[:, top : top + task["size"], left : left + task["size"]].numpy())


def batches(task):
    return dataset.batches(task, read)
