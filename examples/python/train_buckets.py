# SPDX-License-Identifier: Apache-2.0
"""Train a denoising network on images of several aspect ratios, as SDXL does: every batch has one
size.

    python3 examples/python/train_buckets.py photos.pen

Each image is in the bucket whose aspect ratio is nearest to its own, and is resized and cropped to
the size of this bucket. Killed and started again, it continues after the last checkpoint with the
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

# SDXL has area=1024 * 1024 and multiple=64.
BUCKETS = penstock.aspect_buckets(area=64 * 64, multiple=8, max_ratio=2)


def denoiser() -> nn.Module:
    """Convolutions only: it takes images of any size."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(),
                         nn.Conv2d(32, 32, 3, padding=1), nn.SiLU(),
                         nn.Conv2d(32, 3, 3, padding=1))


def main() -> None:
    args = recipe_parser(__doc__).parse_args()
    loader = penstock.Loader(
        args.path, args.batch_size, shuffle=True, buckets=BUCKETS, return_info=True,
        pipeline={"image": [ops.decode(), ops.cover("bucket", position="random"), ops.hflip(),
                            ops.normalize(0.5, 0.5), ops.tensor("f32")]})
    model = denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        image, info = batch
        assert tuple(image.shape[2:]) == BUCKETS[info.bucket]
        seed = torch.Generator().manual_seed(info.epoch << 32 | info.position)
        noise = torch.randn(image.shape, generator=seed)
        share = torch.rand(len(image), 1, 1, 1, generator=seed)
        found = model(image * (1 - share) + noise * share)
        return mse_loss(found[info.valid], noise[info.valid])

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
