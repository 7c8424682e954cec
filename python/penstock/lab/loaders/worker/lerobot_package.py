# SPDX-License-Identifier: Apache-2.0
"""The lerobot package, and datasets that it writes. Runs in the environment of lerobot."""

import importlib.metadata
import os

os.environ["HF_HUB_OFFLINE"] = "1"  # datasets are folders on this machine

import numpy as np
import torch

# torchvision's compiled operators have no build beside this one of torch, and LeRobot uses none of
# them. All that importing torchvision needs of them is the schema of nms.
_SCHEMA = torch.library.Library("torchvision", "DEF")
_SCHEMA.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: E402

FPS = 30
CAMERAS = ("observation.images.top", "observation.images.wrist")
TASKS = ("pick up the cube", "öffne die Schublade")
NUMBERS = {"observation.state": ("float32", (6,)), "action": ("float32", (3,)),
           "next.reward": ("float32", (1,)), "next.done": ("bool", (1,))}


def versions():
    names = ("lerobot", "torch", "torchcodec", "av", "datasets")
    return {name: importlib.metadata.version(name) for name in names}


def opened(folder, delta_timestamps, backend):
    """backend: torchcodec, LeRobot's default, or pyav."""
    return LeRobotDataset("local/dataset", root=folder, delta_timestamps=delta_timestamps,
                          video_backend=backend)


def _features(height, width):
    names = ["height", "width", "channels"]
    cameras = {name: {"dtype": "video", "shape": (height, width, 3), "names": names}
               for name in CAMERAS}
    return cameras | {name: {"dtype": dtype, "shape": shape, "names": None}
                      for name, (dtype, shape) in NUMBERS.items()}


def _numbers(rng, is_last):
    found = {name: rng.normal(size=shape).astype(dtype)
             for name, (dtype, shape) in NUMBERS.items() if dtype != "bool"}
    return found | {"next.done": np.array([is_last])}


def write(folder, size, lengths, picture, codec="libsvtav1", file_mb=None, streaming=False):
    """A dataset with two cameras, states and actions. Each episode has one of two tasks.

    size       (height, width)
    lengths    frames of each episode
    picture    picture(camera number, episode, frame) is the image of a camera, uint8
    file_mb    largest size of a file of videos, and of one of numbers; None: LeRobot's
    streaming  encode while frames are added, instead of from PNG files
    """
    made = LeRobotDataset.create("local/dataset", FPS, _features(*size), root=folder, vcodec=codec,
                                 streaming_encoding=streaming, encoder_queue_maxsize=1 << 20)
    if file_mb:
        made.meta.update_chunk_settings(data_files_size_in_mb=file_mb,
                                        video_files_size_in_mb=file_mb)
    rng = np.random.default_rng(3)
    for episode, length in enumerate(lengths):
        for frame in range(length):
            images = {name: picture(i, episode, frame) for i, name in enumerate(CAMERAS)}
            made.add_frame(images | _numbers(rng, frame == length - 1)
                           | {"task": TASKS[episode % len(TASKS)]})
        made.save_episode(parallel_encoding=False)
    made.finalize()
