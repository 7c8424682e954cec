# SPDX-License-Identifier: Apache-2.0
"""Train with small images first, and with larger ones later: progressive resizing.

    python3 examples/python/train_stages.py photos.pen --epochs 3

The stages can also have different packs, for example one with images of 160 pixels. Killed and
started again, it continues after the last checkpoint with the same batches, in the same stage.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy

SIZES = {0: 32, 1: 48, 2: 64}  # by first epoch


def pipeline(size: int) -> list[ops.Op]:
    return [ops.decode(), ops.random_resized_crop(size), ops.hflip(), ops.normalize(),
            ops.tensor("f32")]


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    pack = penstock.open(args.path)
    loader = penstock.stages([(epoch, {"pipeline": pipeline(size)})
                              for epoch, size in SIZES.items()],
                             pack=pack, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = small_net(len(pack.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.label)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
