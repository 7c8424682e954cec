# SPDX-License-Identifier: Apache-2.0
"""What torchvision's transforms do to PIL images, with Pillow alone."""

import io
import random

import numpy as np
from PIL import Image

from .draws import centre, random_box, resized

BILINEAR = Image.Resampling.BILINEAR


class Transform:
    def __init__(self, task):
        self.size, self.short = task["size"], task["short"]
        self.call = {"train": self.train, "validation": self.validation}[task["transform"]]

    def boxed(self, image, box):
        x, y, w, h = box
        return image.crop((x, y, x + w, y + h)).resize((self.size, self.size), BILINEAR)

    def train(self, image):
        image = self.boxed(image, random_box(*image.size))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return image

    def validation(self, image):
        image = image.resize(resized(*image.size, self.short), BILINEAR)
        x, y = centre(*image.size, self.size)
        return image.crop((x, y, x + self.size, y + self.size))

    def pixels(self, file):
        """`file` is a path, or the bytes of one."""
        return np.array(self.call(open_rgb(file)))


def open_rgb(file):
    with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file) as image:
        return image.convert("RGB")


def check(task, files):
    """The cases' pixels, by what the loader uses for its batches."""
    transform, out = Transform(task), []
    for case in task["cases"]:
        image = open_rgb(files[case["id"]])
        if task["check"] == "crops":
            image = transform.boxed(image, case["box"])
        else:
            image = transform.validation(image)
        out.append(np.array(image))
    return np.stack(out)
