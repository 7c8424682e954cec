# SPDX-License-Identifier: Apache-2.0
"""Train a small network with DINO: a student sees 2 large and 8 small crops of each image, and
learns what its teacher, an average of itself, says of the large ones.

    python3 examples/make_shapes.py shapes.tar 120
    penstock index shapes.tar -o shapes.pen
    python3 examples/python/train_dino.py shapes.pen

`repeat 8` returns the small crops as one tensor N, 8, C, H, W. Killed and started again, it
continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

import copy
from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from torch import nn
from torch.nn.functional import log_softmax, softmax

WIDTH, MOMENTUM = 64, 0.98
COLORS = "hflip | color_jitter 0.4 0.4 0.2 0.1 | grayscale 0.2 | normalize | tensor f32"
LARGE = f"image: decode | random_resized_crop 64 scale=0.4,1 filter=bicubic | {COLORS}"
SMALL = f"image: decode | random_resized_crop 32 scale=0.05,0.4 filter=bicubic | {COLORS}"


class Dino(nn.Module):
    """Student, teacher, and the mean of what the teacher has said."""

    def __init__(self) -> None:
        super().__init__()
        self.student = small_net(WIDTH)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.register_buffer("center", torch.zeros(WIDTH))

    def loss(self, large: list[torch.Tensor], small: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            said = torch.stack([self.teacher(view) for view in large])
            mean = said.mean((0, 1))
            self.center = self.center.lerp(mean, 0.1) if self.center.any() else mean
            targets = softmax((said - self.center) / 0.04, -1)
        seen = [self.student(view) for view in large]
        seen += self.student(small.flatten(0, 1)).unflatten(0, small.shape[:2]).unbind(1)
        pairs = [-(target * log_softmax(logits / 0.1, -1)).sum(-1).mean()
                 for i, target in enumerate(targets) for k, logits in enumerate(seen) if i != k]
        return torch.stack(pairs).mean()

    @torch.no_grad()
    def follow(self) -> None:
        """The teacher moves a little towards the student."""
        for mine, new in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            mine.lerp_(new, 1 - MOMENTUM)


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True, pipeline={
        "large1": LARGE, "large2": LARGE, "small": f"{SMALL} | repeat 8"})


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), Dino()
    optimizer = torch.optim.Adam(model.student.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        model.follow()
        return model.loss([batch.large1, batch.large2], batch.small)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
