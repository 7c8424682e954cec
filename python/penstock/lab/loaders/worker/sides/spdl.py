# SPDX-License-Identifier: Apache-2.0
"""SPDL: FFmpeg decodes full images, its filters crop and scale; threads of one process."""

import importlib.metadata
import pathlib
import random

import numpy as np
import spdl.io
from PIL import Image
from spdl.pipeline import PipelineBuilder

from .draws import centre, random_box, resized

END = "format=pix_fmts=rgb24"


def boxed(box, size):
    x, y, w, h = box
    return f"crop={w}:{h}:{x}:{y}:exact=1,scale={size}:{size}:flags=bilinear"


class Side:
    notes = ["scaled by FFmpeg (bilinear); sizes are read by Pillow from the headers"]

    def __init__(self, task):
        self.task, self.stored = task, task["files"]
        self.versions = {"spdl": importlib.metadata.version("spdl")}
        self.order = list(range(len(task["files"])))

    def filters(self, width, height):
        size = self.task["size"]
        if self.task["transform"] == "train":
            flip = ["hflip"] if random.random() < 0.5 else []
            return ",".join([boxed(random_box(width, height), size), *flip, END])
        return self.validation(width, height)

    def validation(self, width, height):
        size = self.task["size"]
        wide, high = resized(width, height, self.task["short"])
        x, y = centre(wide, high, size)
        return f"scale={wide}:{high}:flags=bilinear,crop={size}:{size}:{x}:{y}:exact=1,{END}"

    @staticmethod
    def decoded(data, filters):
        frames = spdl.io.decode_packets(spdl.io.demux_image(data), filter_desc=filters)
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    def sample(self, i):
        file = self.task["files"][i]
        with Image.open(file) as image:
            filters = self.filters(*image.size)
        return self.decoded(pathlib.Path(file).read_bytes(), filters), i

    def epoch(self):
        if self.task["transform"] == "train":
            random.shuffle(self.order)
        pipeline = (PipelineBuilder().add_source(self.order)
                    .pipe(self.sample, concurrency=self.task["threads"])
                    .aggregate(self.task["batch"])
                    .add_sink(2).build(num_threads=self.task["threads"]))
        with pipeline.auto_stop():
            for batch in pipeline:
                np.stack([image for image, _ in batch])
                yield [i for _, i in batch]

    def check(self):
        out = []
        for case in self.task["cases"]:
            crops = self.task["check"] == "crops"
            filters = (f"{boxed(case['box'], self.task['size'])},{END}" if crops
                       else self.validation(*case["wh"]))
            data = pathlib.Path(self.task["files"][case["id"]]).read_bytes()
            out.append(self.decoded(data, filters))
        return np.stack(out)
