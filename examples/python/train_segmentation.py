# SPDX-License-Identifier: Apache-2.0
"""Train a small network that finds the class of every pixel.

    python3 examples/make_shapes.py shapes.tar 120
    penstock index shapes.tar -o shapes.pen
    python3 examples/python/train_segmentation.py shapes.pen

Up to the colors, the mask has the operations of the image, so both are cropped and flipped in the
same way. Killed and started again, it continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser
from penstock import ops
from torch import nn
from torch.nn.functional import cross_entropy

CLASSES = 3


def make_net() -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for channels_in, channels, step in ((3, 16, 1), (16, 32, 2), (32, 16, 4)):
        layers += [nn.Conv2d(channels_in, channels, 3, padding=step, dilation=step), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(16, CLASSES, 1))


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    geometry = [ops.decode(), ops.random_resized_crop(64, scale=(0.5, 1)), ops.hflip()]
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True, pipeline={
        "image": [*geometry, ops.color_jitter(0.2, 0.2), ops.normalize(), ops.tensor("f32")],
        "mask": [*geometry, ops.tensor("i64")],
    })


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), make_net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.mask)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
