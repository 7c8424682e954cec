# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI without a GPU: files, decoder with crop, antialiased triangular resize."""

import numpy as np
from nvidia import dali
from nvidia.dali import fn, pipeline_def, types

DEPTH = 2
INTERP = types.INTERP_TRIANGULAR


def train_images(files, size):
    images = fn.decoders.image_random_crop(
        files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
        random_aspect_ratio=[3 / 4, 4 / 3])
    images = fn.resize(images, resize_x=size, resize_y=size, interp_type=INTERP)
    return fn.flip(images, horizontal=fn.random.coin_flip())


def validation_images(files, size, short):
    images = fn.decoders.image(files, device="cpu", output_type=types.RGB)
    images = fn.resize(images, resize_shorter=short, interp_type=INTERP)
    return fn.crop(images, crop=(size, size))


@pipeline_def
def epochs(task):
    train = task["transform"] == "train"
    files, ids = fn.readers.file(
        files=task["files"], labels=list(range(len(task["files"]))), shuffle_after_epoch=train,
        pad_last_batch=True, name="files")
    if train:
        return train_images(files, task["size"]), ids
    return validation_images(files, task["size"], task["short"]), ids


@pipeline_def
def cases(task):
    files, _ = fn.readers.file(files=[task["files"][case["id"]] for case in task["cases"]])
    if task["check"] != "crops":
        return validation_images(files, task["size"], task["short"])
    boxes = iter([case["box"] for case in task["cases"]])

    def one(_):
        x, y, w, h = next(boxes)
        return np.array([y, x], np.int64), np.array([h, w], np.int64)

    at, shape = fn.external_source(source=one, num_outputs=2, batch=False)
    images = fn.decoders.image_slice(files, at, shape, axis_names="HW", device="cpu",
                                     output_type=types.RGB, normalized_anchor=False,
                                     normalized_shape=False)
    return fn.resize(images, resize_x=task["size"], resize_y=task["size"], interp_type=INTERP)


class Side:
    notes = ["NumPy views of its own batches, no torch; warm before its first epoch"]

    def __init__(self, task):
        self.task, self.stored = task, task["files"]
        self.versions = {"nvidia-dali": dali.__version__}
        self.n, self.batch = len(task["files"]), task["batch"]
        if self.n % self.batch:
            self.notes = [*self.notes, "decodes what fills up its last batch"]
        self.pipe = epochs(task, batch_size=self.batch, num_threads=task["threads"], device_id=None,
                           prefetch_queue_depth=DEPTH)
        self.pipe.build()
        self.n_batches = -(-self.n // self.batch)
        self.warm_up()

    def take(self):
        """The ids of the next batch that was ordered."""
        images, ids = self.pipe.share_outputs()
        np.asarray(images.as_tensor())
        ids = np.array(ids.as_tensor()).reshape(-1)
        self.pipe.release_outputs()
        return ids

    def warm_up(self):
        """The first order is one of DEPTH batches; the rest of their epoch is taken, too."""
        self.pipe.schedule_run()
        more = -DEPTH % self.n_batches
        for _ in range(more):
            self.take()
            self.pipe.schedule_run()
        for _ in range(DEPTH):
            self.take()

    def epoch(self):
        """Batches are ordered one by one, so that none of the next epoch is made in advance: that
        work would be done in another loader's time."""
        for _ in range(min(DEPTH, self.n_batches)):
            self.pipe.schedule_run()
        for i in range(self.n_batches):
            yield self.take()[: self.n - i * self.batch]
            if i + DEPTH < self.n_batches:
                self.pipe.schedule_run()

    def check(self):
        pipe = cases(self.task, batch_size=len(self.task["cases"]), device_id=None,
                     num_threads=1, prefetch_queue_depth=1, exec_pipelined=False, exec_async=False)
        pipe.build()
        (images,) = pipe.run()
        return images.as_array()
