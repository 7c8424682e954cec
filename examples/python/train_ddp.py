# SPDX-License-Identifier: Apache-2.0
"""Train on several processes with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/python/train_ddp.py photos.pen

The loader asks torch.distributed which rank of how many it is, gives every rank its own samples
and all of them the same number of batches; there is no sampler. --batch-size is of each rank.
"""

from __future__ import annotations

import penstock
import torch
import torch.distributed as dist
from common import Progress, parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--size", type=int, default=64, help="pixels of a side")
    args = options.parse_args()
    dist.init_process_group("gloo")
    pack = penstock.open(args.path)
    loader = penstock.Loader(
        pack,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        pipeline=[
            ops.decode(),
            ops.random_resized_crop(args.size),
            ops.hflip(),
            ops.normalize(),
            ops.tensor("f32"),
        ],
    )
    model = DistributedDataParallel(small_net(len(pack.classes)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(args.epochs):
        loader.set_epoch(epoch)
        # One rank prints; the others are as far.
        progress = Progress(epoch, len(loader), quiet=dist.get_rank() != 0)
        for image, label in loader:
            progress.got_batch()
            scores = model(image)
            loss = cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # Over all ranks: loss, right answers, samples.
            sums = torch.tensor([loss.item(), float((scores.argmax(1) == label).sum()), len(label)])
            dist.all_reduce(sums)
            total, correct, n = sums.tolist()
            progress.done_batch(total / dist.get_world_size(), int(correct), int(n))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
