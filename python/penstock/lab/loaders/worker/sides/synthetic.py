# SPDX-License-Identifier: Apache-2.0
"""One batch that is made once and delivered again and again: the ceiling of every loader."""

import numpy as np


class Side:
    notes = ["reads and decodes nothing: the highest rate that this comparison can show"]
    versions = {"numpy": np.__version__}
    stored = []

    def __init__(self, task):
        self.n, self.batch = len(task["files"]), task["batch"]
        rng = np.random.default_rng(task["seed"])
        self.images = rng.integers(0, 256, (self.batch, 3, task["size"], task["size"]), np.uint8)

    def epoch(self):
        for first in range(0, self.n, self.batch):
            ids = range(self.n)[first : first + self.batch]
            yield ids

    def check(self):
        raise NotImplementedError("has no images")
