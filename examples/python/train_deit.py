# SPDX-License-Identifier: Apache-2.0
"""Train a small vision transformer with the recipe of DeiT and timm: RandAugment, random erasing,
mixup or CutMix of every batch, and label smoothing, with soft targets.

    python3 examples/python/train_deit.py photos.pen

Images and targets arrive mixed: the training loop has a cross entropy with soft targets, and
nothing else to do. Killed and started again, it continues after the last checkpoint with the same
batches and the same targets.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser
from penstock import ops
from torch import nn
from torch.nn.functional import cross_entropy

SIDE, PATCH, WIDTH = 64, 8, 64


class SmallViT(nn.Module):
    """Patches, two transformer layers, and the mean of all tokens."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.places = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True,
                                           norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.layers(tokens).mean(1))


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    pack = penstock.open(path)
    # timm: mixup 0.8, cutmix 1.0, prob 1.0, switch_prob 0.5, smoothing 0.1
    return penstock.Loader(pack, batch_size, shuffle=True, drop_last=True, pipeline={
        "image": [ops.decode(), ops.random_resized_crop(SIDE, filter="bicubic"), ops.hflip(),
                  ops.rand_augment(2, 9), ops.normalize(), ops.random_erasing(0.25),
                  ops.tensor("f32"), ops.mixup(0.8, p=0.5), ops.cutmix(1.0, p=0.5)],
        "label": [ops.one_hot(len(pack.classes), label_smoothing=0.1), ops.tensor("f32")],
    })


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    torch.manual_seed(0)
    loader = make_loader(args.path, args.batch_size)
    model = SmallViT(len(loader.dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0005, weight_decay=0.05)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.label)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
