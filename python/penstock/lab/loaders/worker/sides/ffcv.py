# SPDX-License-Identifier: Apache-2.0
"""FFCV: a .beton file of JPEGs that it encodes anew, or of raw pixels; page cache as storage."""

import importlib.metadata
import os
import pathlib

import numpy as np
import torch
from ffcv import fields, loader, transforms, writer
from ffcv.fields import decoders, rgb_image
from PIL import Image


class Folder:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as image:
            return image.convert("RGB"), i


def write_beton(path, task, mode):
    half = path.with_suffix(".half")
    settings = {"write_mode": mode, "jpeg_quality": task["quality"]}
    if task["max_side"]:
        settings["max_resolution"] = task["max_side"]
    columns = {"image": fields.RGBImageField(**settings), "label": fields.IntField()}
    out = writer.DatasetWriter(str(half), columns, num_workers=task["threads"])
    out.from_indexed_dataset(Folder(task["originals"]))
    os.replace(half, path)


class BoxesBySize(rgb_image.ResizedCropRGBImageDecoder):
    """Given boxes: a decoder learns the size of an image, not its number, so that the cases have
    sizes of their own."""

    def __init__(self, size, cases):
        super().__init__((size, size))
        self.scale, self.ratio = (0.08, 1.0), (0.75, 4 / 3)
        self.table = np.array([[*case["wh"], *case["box"]] for case in cases], np.int64)

    @property
    def get_crop_generator(self):
        table = self.table

        def box_of(height, width, scale, ratio):
            for row in table:
                if row[0] == width and row[1] == height:
                    return row[3], row[2], row[5], row[4]
            return 0, 0, height, width

        return box_of


class Side:
    def __init__(self, task):
        self.task = task
        mode = "raw" if task["stored"] == "raw" else "jpg"
        name = f"ffcv-{mode}-{task['max_side'] or 'full'}-{task['quality']}.beton"
        self.path = pathlib.Path(task["work"]) / name
        if not self.path.exists():
            write_beton(self.path, task, mode)
        self.stored = [str(self.path)]
        self.notes = [f"JPEG encoded anew at quality {task['quality']}" if mode == "jpg"
                      else f"raw pixels, longer side at most {task['max_side']}"]
        self.versions = {"ffcv": importlib.metadata.version("ffcv"), "torch": torch.__version__}
        train = task["transform"] == "train"
        order = loader.OrderOption.RANDOM if train else loader.OrderOption.SEQUENTIAL
        image = [self.train(), transforms.RandomHorizontalFlip()] if train else [self.centre()]
        self.loader = self.open(task["batch"], order, image, task["threads"])

    def train(self):
        return decoders.RandomResizedCropRGBImageDecoder((self.task["size"],) * 2)

    def centre(self):
        size, short = self.task["size"], self.task["short"]
        return decoders.CenterCropRGBImageDecoder((size, size), ratio=size / short)

    def open(self, batch, order, image, threads, **more):
        return loader.Loader(
            str(self.path), batch_size=batch, num_workers=threads, order=order, os_cache=True,
            drop_last=False, pipelines={
                "image": [*image, transforms.ToTensor()],
                "label": [decoders.IntDecoder(), transforms.ToTensor()]}, **more)

    def epoch(self):
        for _, ids in self.loader:
            yield ids.reshape(-1)

    def check(self):
        cases = self.task["cases"]
        crops = self.task["check"] == "crops"
        decoder = BoxesBySize(self.task["size"], cases) if crops else self.centre()
        ids = np.array([case["id"] for case in cases])
        checked = self.open(len(ids), loader.OrderOption.SEQUENTIAL, [decoder], 1, indices=ids)
        out = np.empty((len(ids), self.task["size"], self.task["size"], 3), np.uint8)
        for images, labels in checked:
            place = {int(n): i for i, n in enumerate(labels.reshape(-1))}
            out[:] = images.numpy()[[place[int(n)] for n in ids]]
        return out
