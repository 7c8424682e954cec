# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over a folder: Pillow, or OpenCV, in worker processes."""

import random

import numpy as np
import PIL
import torch

from . import pil
from .draws import centre, random_box, resized


class OpenCV:
    """The same with OpenCV, as people write it: bilinear, without antialiasing."""

    def __init__(self, task):
        import cv2

        cv2.setNumThreads(1)
        self.cv2, self.size, self.short = cv2, task["size"], task["short"]
        self.call = {"train": self.train, "validation": self.validation}[task["transform"]]

    def boxed(self, image, box):
        x, y, w, h = box
        return self.cv2.resize(image[y : y + h, x : x + w], (self.size, self.size),
                               interpolation=self.cv2.INTER_LINEAR)

    def train(self, image):
        image = self.boxed(image, random_box(image.shape[1], image.shape[0]))
        return image[:, ::-1] if random.random() < 0.5 else image

    def validation(self, image):
        image = self.cv2.resize(image, resized(image.shape[1], image.shape[0], self.short),
                                interpolation=self.cv2.INTER_LINEAR)
        x, y = centre(image.shape[1], image.shape[0], self.size)
        return image[y : y + self.size, x : x + self.size]

    def pixels(self, file):
        image = self.call(self.cv2.imread(file))
        return np.ascontiguousarray(image[:, :, ::-1])

    def check(self, task):
        out = []
        for case in task["cases"]:
            image = self.cv2.imread(task["files"][case["id"]])
            crops = task["check"] == "crops"
            image = self.boxed(image, case["box"]) if crops else self.validation(image)
            out.append(image[:, :, ::-1])
        return np.stack(out)


class Folder(torch.utils.data.Dataset):
    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.from_numpy(self.transform.pixels(self.files[i])), i


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, self.stored = task, task["files"]
        self.opencv = task["options"].get("decoder") == "opencv"
        self.transform = (OpenCV if self.opencv else pil.Transform)(task)
        self.versions = {"torch": torch.__version__}
        if self.opencv:
            self.versions["opencv"] = self.transform.cv2.__version__
            self.notes = ["resamples without antialiasing"]
        else:
            self.versions["pillow"] = PIL.__version__
        self.loader = torch.utils.data.DataLoader(
            Folder(task["files"], self.transform), batch_size=task["batch"],
            shuffle=task["transform"] == "train", num_workers=task["threads"],
            persistent_workers=True, prefetch_factor=2)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        if self.opencv:
            return self.transform.check(self.task)
        return pil.check(self.task, self.task["files"])
