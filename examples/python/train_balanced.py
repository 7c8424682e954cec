# SPDX-License-Identifier: Apache-2.0
"""Train with about equally many images of each class, although the pack has more of some.

    python3 examples/python/train_balanced.py photos.pen

Each sample has a weight, one over the size of its class. Killed and started again, it continues
after the last checkpoint with the same batches.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    pack = penstock.open(args.path)
    loader = penstock.Loader(
        pack, args.batch_size, shuffle=True, drop_last=True,
        weights=penstock.balanced_weights(pack.column("label")),
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.normalize(), ops.tensor("f32")])
    model = small_net(len(pack.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.label)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
