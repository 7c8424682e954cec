# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over penstock.Dataset: its workers read and decode with penstock."""

import numpy as np
import torch

import penstock

from . import penstock as own


class Side(own.Side):
    bottleneck = None  # a Dataset has no counters: what /proc shows is used

    def dataset(self, pipeline, **more):
        text = pipeline.format(size=self.task["size"], short=self.task["short"])
        return penstock.Dataset(self.pack, text, **more)

    def open(self, batch, pipeline, threads, shuffle, order=None):
        return torch.utils.data.DataLoader(
            self.dataset(f"{pipeline} nchw"), batch_size=batch, shuffle=shuffle,
            num_workers=threads, persistent_workers=True, prefetch_factor=2)

    def close(self):
        self.loader = None

    def epoch(self):
        self.restart()
        for _, ids in self.loader:
            yield ids

    def check(self):
        """As in penstock.Side: the boxes of the cases are what a seed draws."""
        crops = self.task["check"] == "crops"
        pipeline = "decode | random_resized_crop {size} | tensor u8"
        dataset = self.dataset(pipeline if crops else own.PIPELINES["validation"],
                               seed=self.task["seed"], output="numpy")
        return np.stack([dataset[case["id"]].image for case in self.task["cases"]])
