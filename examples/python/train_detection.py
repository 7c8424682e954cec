# SPDX-License-Identifier: Apache-2.0
"""Train a small network that finds the centers of shapes in images of different sizes.

    python3 examples/make_shapes.py shapes.tar 120
    penstock convert shapes.tar -o shapes_boxes.pen --columns \\
        'image,text,mask,boxes:f32[*,4] boxes xyxy absolute,labels:i64[*]'
    python3 examples/python/train_detection.py shapes_boxes.pen

Images keep their aspect ratio: the shorter side gets one of three lengths, and the longer one at
most 128 pixels. Batches are padded to their largest image. Boxes follow, and labels follow their
boxes. Killed and started again, it continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser
from penstock import ops
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

CLASSES, CELL = 2, 8


def make_net() -> nn.Module:
    """A score for each class and each cell of the image."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for channels_in, channels in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(channels_in, channels, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(64, CLASSES, 1))


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True, pipeline={
        "image": [ops.decode(), ops.resize(min_side=[48, 56, 64], max_side=128), ops.hflip(),
                  ops.normalize(), ops.tensor("f32"), ops.pad_batch(to_multiple_of=CELL)],
        "boxes": [ops.boxes(min_size=2)],
        "labels": [ops.keep("boxes")],
    })


def targets(images: torch.Tensor, boxes: Any, labels: Any) -> torch.Tensor:
    """1 for the class of each box, in the cell that its center lies in."""
    height, width = images.shape[2] // CELL, images.shape[3] // CELL
    found = torch.zeros(len(images), CLASSES, height, width)
    for i, (rows, classes) in enumerate(zip(boxes, labels)):
        x, y = ((rows[:, :2] + rows[:, 2:]) / 2 / CELL).long().T
        found[i, classes, y.clamp(0, height - 1), x.clamp(0, width - 1)] = 1
    return found


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), make_net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        wanted = targets(batch.image, batch.boxes, batch.labels)
        return binary_cross_entropy_with_logits(model(batch.image), wanted)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
