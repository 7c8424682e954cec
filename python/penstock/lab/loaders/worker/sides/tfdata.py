# SPDX-License-Identifier: Apache-2.0
"""tf.data: files, decode_and_crop_jpeg, antialiased resize."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf


def resized_crop(jpeg, window, size):
    image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
    image = tf.image.resize(image, [size, size], method="bilinear", antialias=True)
    return image


def stored(image):
    return tf.cast(tf.clip_by_value(image + 0.5, 0, 255), tf.uint8)


def train(jpeg, size):
    shape = tf.io.extract_jpeg_shape(jpeg)
    begin, extent, _ = tf.image.sample_distorted_bounding_box(
        shape, tf.zeros([0, 0, 4]), area_range=(0.08, 1.0), aspect_ratio_range=(3 / 4, 4 / 3),
        max_attempts=10, use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], extent[0], extent[1]])
    return stored(tf.image.random_flip_left_right(resized_crop(jpeg, window, size)))


def validation(jpeg, size, short):
    """The centre that Resize and CenterCrop show, cut first: the usual way here, and the faster."""
    shape = tf.io.extract_jpeg_shape(jpeg)
    height, width = shape[0], shape[1]
    side = tf.cast(size / short * tf.cast(tf.minimum(height, width), tf.float32), tf.int32)
    window = tf.stack([(height - side) // 2, (width - side) // 2, side, side])
    return stored(resized_crop(jpeg, window, size))


class Side:
    notes = ["NumPy views of its own batches, no torch"]

    def __init__(self, task):
        threads = task["threads"]
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.task, self.stored = task, task["files"]
        self.versions = {"tensorflow": tf.__version__}
        n = len(task["files"])
        data = tf.data.Dataset.from_tensor_slices((task["files"], list(range(n))))
        if task["transform"] == "train":
            data = data.shuffle(n)
        data = data.map(self.sample, num_parallel_calls=threads).batch(task["batch"]).prefetch(2)
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        self.data = data.with_options(options)

    def sample(self, file, number):
        jpeg = tf.io.read_file(file)
        if self.task["transform"] == "train":
            return train(jpeg, self.task["size"]), number
        return validation(jpeg, self.task["size"], self.task["short"]), number

    def epoch(self):
        for images, ids in self.data:
            images.numpy()
            yield ids.numpy()

    def check(self):
        out = []
        for case in self.task["cases"]:
            jpeg = tf.io.read_file(self.task["files"][case["id"]])
            if self.task["check"] == "crops":
                x, y, w, h = case["box"]
                image = stored(resized_crop(jpeg, [y, x, h, w], self.task["size"]))
            else:
                image = validation(jpeg, self.task["size"], self.task["short"])
            out.append(image.numpy())
        return np.stack(out)
