# SPDX-License-Identifier: Apache-2.0
"""Grain: files, Pillow in threads of one process, as its reading threads run the transform."""

import importlib.metadata

import grain
import PIL

from . import pil


class Side:
    notes = ["threads of one process"]

    def __init__(self, task):
        self.task, self.stored = task, task["files"]
        self.transform = pil.Transform(task)
        self.versions = {"grain": importlib.metadata.version("grain"), "pillow": PIL.__version__}
        self.passes = 0

    def sample(self, i):
        return {"image": self.transform.pixels(self.task["files"][i]), "id": i}

    def epoch(self):
        data = grain.MapDataset.range(len(self.task["files"]))
        if self.task["transform"] == "train":
            data = data.shuffle(seed=self.task["seed"] + self.passes)
        self.passes += 1
        options = grain.ReadOptions(num_threads=self.task["threads"],
                                    prefetch_buffer_size=2 * self.task["batch"])
        batches = data.map(self.sample).to_iter_dataset(options)
        for batch in batches.batch(self.task["batch"], drop_remainder=False):
            yield batch["id"]

    def check(self):
        return pil.check(self.task, self.task["files"])
