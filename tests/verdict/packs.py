# SPDX-License-Identifier: Apache-2.0
"""The packs of the cases: drawn photographs, a few of them repeated."""

import numpy as np
from _package import encoded, painted, penstock

KINDS = {  # width and height, samples, how they are stored
    "photos": ((500, 375), 768, {"mode": "keep", "index": False}),
    # Far more than the memory of a loader.
    "many": ((500, 375), 2304, {"mode": "keep", "index": False}),
    "raw": ((256, 256), 480, {"mode": "raw"}),
    "large": ((512, 512), 96, {"mode": "raw"}),
}


def images(width, height, n=12):
    dice = np.random.default_rng(1)
    return [encoded(painted(dice, width, height), "JPEG", quality=90) for _ in range(n)]


def make(kind, path, **more):
    """A pack of this kind; `more` replaces settings of the writer."""
    size, samples, settings = KINDS[kind]
    drawn = images(*size)
    with penstock.Writer(path, {"image": "image", "label": "i64"},
                         **{"block_samples": 2, **settings, **more}) as writer:
        for i in range(samples):
            writer.add(image=drawn[i % len(drawn)], label=i)
