# SPDX-License-Identifier: Apache-2.0
"""What the loaders with worker processes share: which frames, the crop, a tensor of them."""

import pathlib

import numpy as np
import torch


def rows(task):
    """(id, label) of all clips, labels as numbers."""
    text = (pathlib.Path(task["root"]) / "list.csv").read_text(encoding="utf-8")
    pairs = [line.split(";") for line in text.splitlines()][: task["clips"]]
    classes = {name: i for i, name in enumerate(sorted({label for _, label in pairs}))}
    return [(key, classes[label]) for key, label in pairs]


def first_frame(task, n):
    """A random place, or the middle; clips here are long enough."""
    free = n - (task["frames"] - 1) * task["stride"] - 1
    return free // 2 if task["center"] else int(torch.randint(0, free + 1, ()))


def box(task, height, width):
    """Top and left of the center crop."""
    return (height - task["size"]) // 2, (width - task["size"]) // 2


def clip_of(frames):
    """Cropped frames, uint8 [T, H, W, 3], as float [3, T, H, W]."""
    return torch.from_numpy(np.ascontiguousarray(frames)).permute(3, 0, 1, 2).float().div(255)


class Clips(torch.utils.data.Dataset):
    """read(task, key) gives a clip's tensor."""

    def __init__(self, task, read):
        self.task, self.read, self.rows = task, read, rows(task)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        key, label = self.rows[i]
        return self.read(self.task, key), label


def batches(task, read):
    loader = torch.utils.data.DataLoader(
        Clips(task, read), task["batch"], shuffle=task["shuffle"], num_workers=task["workers"],
        drop_last=True)
    for video, _ in loader:
        yield video
