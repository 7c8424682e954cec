# SPDX-License-Identifier: Apache-2.0
"""Train a small network with SimCLR: two views of an image are alike, those of others are not.

    python3 examples/make_shapes.py shapes.tar 120
    penstock index shapes.tar -o shapes.pen
    python3 examples/python/train_simclr.py shapes.pen

One loader returns both views; the file of an image is read and its header parsed once. Killed and
started again, it continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy, normalize

TEMPERATURE = 0.2


def view() -> list[ops.Op]:
    """Both views have these operations. The name of a view enters its random draws."""
    return [ops.source("image"), ops.decode(), ops.random_resized_crop(64, scale=(0.2, 1)),
            ops.hflip(), ops.random_apply([ops.color_jitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            ops.grayscale(0.2), ops.random_apply([ops.gaussian_blur(7)], p=0.5),
            ops.normalize(), ops.tensor("f32")]


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True,
                           pipeline={"view1": view(), "view2": view()})


def nt_xent(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """For each of the 2 N vectors, find the other view of its image among the 2 N - 1 others."""
    both, n = normalize(torch.cat([first, second])), len(first)
    scores = (both @ both.T / TEMPERATURE).fill_diagonal_(float("-inf"))
    return cross_entropy(scores, (torch.arange(2 * n) + n) % (2 * n))


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), small_net(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return nt_xent(model(batch.view1), model(batch.view2))

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
