# SPDX-License-Identifier: Apache-2.0
"""Train a small vision transformer on a token budget, as NaFlex does: images keep their aspect
ratio, and every step has one sequence length. It learns to fill in every other patch.

    python3 examples/python/train_naflex.py photos.pen

Each step has as many tokens as --batch-size images of 36 patches: fewer images of long sequences,
or more of short ones. Killed and started again, it continues after the last checkpoint with the
same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser
from penstock import ops
from torch import nn
from torch.nn.functional import mse_loss

SIDE = 8
LENGTHS = (16, 36, 64)  # NaFlex: 128 to 1024 patches of side 16


class Transformer(nn.Module):
    """One layer; the place of a patch in its image is added to it."""

    def __init__(self, pixels: int = SIDE * SIDE * 3, width: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Linear(pixels, width)
        self.place = nn.Linear(2, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 64, dropout=0, batch_first=True)
        self.head = nn.Linear(width, pixels)

    def forward(self, patches: torch.Tensor, sizes: torch.Tensor, mask: torch.Tensor) -> Any:
        number = torch.arange(patches.shape[1])
        down, across = sizes[:, :1], sizes[:, 1:]
        place = torch.stack([number // across / down, number % across / across], dim=-1)
        found = self.layer(self.embed(patches) + self.place(place), src_key_padding_mask=~mask)
        return self.head(found)


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader = penstock.Loader(
        args.path, tokens=args.batch_size * 36, lengths=LENGTHS, shuffle=True, return_info=True,
        pipeline={"image": [ops.decode(), ops.patches(SIDE), ops.hflip(),
                            ops.normalize(0.5, 0.25), ops.tensor("f32")]})
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss_of(batch: Any) -> torch.Tensor:
        patches, sizes, mask, info = batch
        assert patches.shape[1] == info.length
        hidden = torch.arange(info.length) % 2 == 1
        found = model(patches.masked_fill(hidden[:, None], 0), sizes, mask)
        asked = mask & hidden & info.valid[:, None]
        return mse_loss(found[asked], patches[asked])

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
