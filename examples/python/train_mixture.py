# SPDX-License-Identifier: Apache-2.0
"""Train on a mixture of three packs whose weights change during training.

    python3 examples/python/train_mixture.py photos.pen --epochs 2

Here all three are the same pack; name others with --more. Killed and started again, it continues
after the last checkpoint with the same batches and the same weights.
"""

from __future__ import annotations

from typing import Any

import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


def main() -> None:
    parser = recipe_parser(__doc__)
    parser.add_argument("--more", nargs="*", default=[], help="further packs")
    args = parser.parse_args()
    packs = [penstock.open(path) for path in [args.path, *args.more]]
    packs += [packs[0]] * (3 - len(packs))
    # Mostly the first pack, then more and more of the others.
    mixed = penstock.mix([(packs[0], 0.8), (packs[1], 0.1), (packs[2], 0.1)],
                         schedule=[(3, [0.5, 0.25, 0.25]), (6, [0.2, 0.4, 0.4])])
    loader = penstock.Loader(mixed, args.batch_size, shuffle=True, drop_last=True,
                             pipeline=[ops.decode(), ops.random_resized_crop(48), ops.hflip(),
                                       ops.normalize(), ops.tensor("f32")])
    model = small_net(len(packs[0].classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.label)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
