# SPDX-License-Identifier: Apache-2.0
"""Train a small network that finds the centers of shapes, with boxes that follow the crops.

    python3 examples/make_shapes.py shapes.tar 120
    penstock convert shapes.tar -o shapes.pen --columns \\
        'image,text,mask,boxes:f32[*,4] boxes xyxy absolute,labels:i64[*]'
    python3 examples/python/train_detection.py shapes.pen

A crop that shows less than 30 % of a box drops it, and its label. Killed and started again, it
continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser
from penstock import ops
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

CLASSES, SIZE, CELL = 2, 64, 8


def make_net() -> nn.Module:
    """A score for each class and each cell of the image."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for channels_in, channels in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(channels_in, channels, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(64, CLASSES, 1))


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True, pipeline={
        "image": [ops.decode(), ops.random_resized_crop(SIZE, scale=(0.5, 1)), ops.hflip(),
                  ops.normalize(), ops.tensor("f32")],
        "boxes": [ops.boxes(min_visibility=0.3)],
        "labels": [ops.keep("boxes")],
    })


def targets(boxes: Any, labels: Any) -> torch.Tensor:
    """1 for the class of each box, in the cell that its center lies in."""
    cells = SIZE // CELL
    found = torch.zeros(len(boxes), CLASSES, cells, cells)
    for i, (rows, classes) in enumerate(zip(boxes, labels)):
        x, y = ((rows[:, :2] + rows[:, 2:]) / 2 / CELL).long().clamp(0, cells - 1).T
        found[i, classes, y, x] = 1
    return found


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), make_net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return binary_cross_entropy_with_logits(model(batch.image),
                                                targets(batch.boxes, batch.labels))

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
