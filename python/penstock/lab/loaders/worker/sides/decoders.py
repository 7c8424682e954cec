# SPDX-License-Identifier: Apache-2.0
"""Decoders of JPEG files in memory, one thread: full images, or a box of each, resized.

Decoders without a call for boxes decode the full image. Those that cannot resize use OpenCV."""

import importlib
import importlib.metadata
import pathlib
import random

import numpy as np

from .draws import CORNER, random_box


class Decoder:
    """A full image, and what is made of it with OpenCV."""

    packages = []
    notes = ["resized by OpenCV, without antialiasing"]

    def __init__(self, task):
        import cv2

        cv2.setNumThreads(1)
        self.cv2, self.size = cv2, task["size"]
        self.versions = {name: importlib.metadata.version(name) for name in self.packages}

    def boxed(self, data, box):
        x, y, w, h = box
        return self.cv2.resize(self.full(data)[y : y + h, x : x + w], (self.size, self.size),
                               interpolation=self.cv2.INTER_LINEAR)


class OpenCV(Decoder):
    packages = ["opencv-python-headless"]

    def full(self, data):
        return self.cv2.imdecode(np.frombuffer(data, np.uint8), self.cv2.IMREAD_COLOR_RGB)


class ImageCodecs(Decoder):
    packages = ["imagecodecs"]

    def __init__(self, task):
        super().__init__(task)
        self.decode = importlib.import_module("imagecodecs").jpeg8_decode

    def full(self, data):
        return self.decode(data, outcolorspace="RGB")


class Kornia(Decoder):
    packages = ["kornia-rs"]

    def __init__(self, task):
        super().__init__(task)
        self.decode = importlib.import_module("kornia_rs").io.ImageDecoder().decode

    def full(self, data):
        return self.decode(data)


class SimpleJpeg(Decoder):
    packages = ["simplejpeg"]

    def __init__(self, task):
        super().__init__(task)
        self.decode = importlib.import_module("simplejpeg").decode_jpeg

    def full(self, data):
        return self.decode(data, "RGB")


class Pillow:
    notes = ["resized by Pillow"]

    def __init__(self, task):
        import PIL

        from . import pil

        self.versions = {"pillow": PIL.__version__}
        self.open_rgb = pil.open_rgb
        self.transform = pil.Transform({**task, "transform": "train"})

    def full(self, data):
        return np.asarray(self.open_rgb(data))

    def boxed(self, data, box):
        return np.asarray(self.transform.boxed(self.open_rgb(data), box))


class Penstock:
    notes = []

    def __init__(self, task):
        self.penstock, self.size = importlib.import_module("penstock"), task["size"]
        self.versions = {"penstock": self.penstock.__version__}

    def full(self, data):
        return self.penstock.decode(data)

    def boxed(self, data, box):
        x, y, w, h = box
        return self.penstock.decode(data, (y, x, h, w), self.size)


class PenstockBatch(Penstock):
    def many(self, datas, boxes):
        if boxes is None:
            return self.penstock.decode_batch(datas, threads=1)
        boxes = [(y, x, h, w) for x, y, w, h in boxes]
        return self.penstock.decode_batch(datas, boxes, self.size, threads=1)


DECODERS = {"penstock": Penstock, "penstock-batch": PenstockBatch, "pillow": Pillow,
            "opencv": OpenCV, "imagecodecs": ImageCodecs, "kornia-rs": Kornia,
            "simplejpeg": SimpleJpeg}


class Side:
    def __init__(self, task):
        self.task, self.stored = task, task["files"]
        self.decoder = DECODERS[task["options"]["decoder"]](task)
        self.versions = self.decoder.versions
        self.datas = [pathlib.Path(file).read_bytes() for file in task["files"]]
        self.boxes, self.notes = None, []
        if task["transform"] == "box":
            self.boxes = [self.box(i, data) for i, data in enumerate(self.datas)]
            self.notes = self.decoder.notes

    def box(self, i, data):
        """The same in every epoch and for every decoder."""
        height, width = self.decoder.full(data).shape[:2]
        random.seed(i)
        return random_box(width, height)

    def epoch(self):
        for first in range(0, len(self.datas), self.task["batch"]):
            ids = range(len(self.datas))[first : first + self.task["batch"]]
            part = slice(ids.start, ids.stop)
            if hasattr(self.decoder, "many"):
                self.decoder.many(self.datas[part], self.boxes and self.boxes[part])
            elif self.boxes:
                for i in ids:
                    self.decoder.boxed(self.datas[i], self.boxes[i])
            else:
                for i in ids:
                    self.decoder.full(self.datas[i])
            yield ids

    def check(self):
        cases = [(self.datas[case["id"]], case["box"]) for case in self.task["cases"]]
        if hasattr(self.decoder, "many"):
            datas, boxes = zip(*cases)
            images = self.decoder.many(list(datas), self.boxes and list(boxes))
        elif self.boxes:
            images = [self.decoder.boxed(data, box) for data, box in cases]
        else:
            images = [self.decoder.full(data) for data, _ in cases]
        if self.boxes is None:
            images = [image[:CORNER, :CORNER] for image in images]
        return np.stack(images)
