# SPDX-License-Identifier: Apache-2.0
"""JPEG files in folders by Pillow, as GulpIO-benchmarks has it: one image after the other, each
cropped and made a tensor, then stacked."""

import glob

import numpy as np
import PIL
import torch
from PIL import Image

from . import dataset


def versions():
    return {"torch": torch.__version__, "pillow": PIL.__version__}


def tensor_of(task, file):
    image = Image.open(file).convert("RGB")
    top, left = dataset.box(task, image.height, image.width)
    image = image.crop((left, top, left + task["size"], top + task["size"]))
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)


def read(task, key):
    files = sorted(glob.glob(f"{task['root']}/frames/{key}/*.jpg"))
    first, stride = dataset.first_frame(task, len(files)), task["stride"]
    chosen = files[first : first + task["frames"] * stride : stride]
    return torch.stack([tensor_of(task, file) for file in chosen]).permute(1, 0, 2, 3)


def batches(task):
    return dataset.batches(task, read)
