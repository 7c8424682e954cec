# SPDX-License-Identifier: Apache-2.0
"""Train a small CLIP on images and their captions, which stay in a WebDataset tar.

    python3 examples/make_shapes.py shapes.tar 120
    penstock index shapes.tar -o shapes.pen
    python3 examples/python/train_clip.py shapes.pen

Two networks map an image and its caption to the same vector. Killed and started again, it continues
after the last checkpoint with the same batches.
"""

from __future__ import annotations

import zlib
from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch import nn
from torch.nn.functional import cross_entropy, normalize

WORDS, WIDTH = 512, 32


class Clip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = small_net(WIDTH)
        self.text = nn.EmbeddingBag(WORDS, WIDTH)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image: torch.Tensor, captions: Any) -> torch.Tensor:
        """How well each image fits each caption."""
        a, b = normalize(self.image(image)), normalize(self.text(*tokens(captions)))
        return a @ b.T * self.scale.exp()


def tokens(captions: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of all words, and where each caption begins: a tokenizer of one line."""
    numbers, starts = [], []
    for caption in captions:
        starts.append(len(numbers))
        numbers += [zlib.crc32(word.encode()) % WORDS for word in caption.split()]
    return torch.tensor(numbers), torch.tensor(starts)


def make_loader(path: str, batch_size: int) -> penstock.Loader:
    image = [ops.decode(), ops.random_resized_crop(64, scale=(0.8, 1)), ops.normalize(),
             ops.tensor("f32")]
    return penstock.Loader(path, batch_size, shuffle=True, drop_last=True,
                           pipeline={"image": image, "text": [ops.text(1024)]})


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader, model = make_loader(args.path, args.batch_size), Clip()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        scores, match = model(batch.image, batch.text), torch.arange(len(batch.text))
        return (cross_entropy(scores, match) + cross_entropy(scores.T, match)) / 2

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
