# SPDX-License-Identifier: Apache-2.0
"""Train with NumPy alone: softmax regression on small images.

    python3 examples/python/numpy_only.py photos.pen

output="numpy" gives arrays over the loader's own memory: nothing is copied, no torch needed.
"""

from __future__ import annotations

import numpy
import penstock
from common import Progress, parser
from penstock import ops


def main() -> None:
    args = parser(__doc__).parse_args()
    pack = penstock.open(args.path)
    loader = penstock.Loader(
        pack,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        pipeline=[ops.decode(), ops.resize((32, 32)), ops.hflip(), ops.tensor("f32")],
        output="numpy",
    )
    weights = numpy.zeros((32 * 32 * 3, len(pack.classes)), numpy.float32)
    for epoch in range(args.epochs):
        loader.set_epoch(epoch)
        progress = Progress(epoch, len(loader))
        for image, label in loader:
            progress.got_batch()
            pixels = image.reshape(len(image), -1) - 0.5
            scores = pixels @ weights
            scores -= scores.max(1, keepdims=True)
            shares = numpy.exp(scores)
            shares /= shares.sum(1, keepdims=True)
            right = shares[numpy.arange(len(label)), label]
            correct = int((shares.argmax(1) == label).sum())
            shares[numpy.arange(len(label)), label] -= 1
            weights -= 0.01 * (pixels.T @ shares) / len(label)
            progress.done_batch(-float(numpy.log(right + 1e-9).mean()), correct, len(label))


if __name__ == "__main__":
    main()
