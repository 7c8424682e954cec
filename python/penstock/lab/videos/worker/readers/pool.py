# SPDX-License-Identifier: Apache-2.0
"""What loaders have in common that decode in a pool of threads: which frames, crop and resize."""

import random
from concurrent.futures import ThreadPoolExecutor

import torch


def frame_numbers(task, epoch, i, n):
    """A random place in a video of n frames, or the middle."""
    free = n - (task["frames"] - 1) * task["stride"] - 1
    first = free // 2 if task["center"] else random.Random(f"{epoch}-{i}").randint(0, free)
    return [first + k * task["stride"] for k in range(task["frames"])]


def shaped(task, frames):
    """uint8 [T, 3, H, W] as [3, T, size, size]."""
    crop, size = task["crop"], task["size"]
    top, left = (frames.shape[2] - crop) // 2, (frames.shape[3] - crop) // 2
    box = frames[:, :, top : top + crop, left : left + crop]
    small = torch.nn.functional.interpolate(box, (size, size), mode="bilinear", antialias=True)
    return small.transpose(0, 1)


class Pool:
    """read(task, epoch, i) gives clip i of an epoch, [3, T, size, size]."""

    bytes = None

    def __init__(self, task, read):
        torch.set_num_threads(1)  # of one operation: the pool has as many as are measured
        self.task, self.read = task, read
        self.threads = ThreadPoolExecutor(task["threads"])

    def batches(self, epoch):
        task, batch = self.task, []
        for clip in self.threads.map(lambda i: self.read(task, epoch, i), range(task["clips"])):
            batch.append(clip)
            if len(batch) == task["batch"]:
                yield torch.stack(batch).numpy()
                batch = []

    def close(self):
        self.threads.shutdown()
