# SPDX-License-Identifier: Apache-2.0
"""Train on a number of nodes that changes while the job runs.

    torchrun --standalone --nproc-per-node 2 examples/python/train_elastic.py photos.pen

With these options, start the same command on each node, at any time; HOST is one of them:

    torchrun --nnodes 1:4 --nproc-per-node 1 --max-restarts 10 --rdzv-backend c10d \\
        --rdzv-endpoint HOST:29400 examples/python/train_elastic.py photos.pen

If a node joins, fails or leaves, torchrun restarts all processes with the new number of ranks. They
resume from the last checkpoint, in the middle of an epoch: each sample of the epoch is used once.
--batch-size is of all ranks together.
"""

from __future__ import annotations

import argparse
import os
import time
import uuid
from typing import Any

import penstock
import torch
import torch.distributed as dist
from common import Progress, SampleLog, batches_done, elastic_parser, print_start, small_net
from penstock import ops
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def make_parts(args: argparse.Namespace) -> dict[str, Any]:
    """Everything that has a state."""
    pack = penstock.open(args.path)
    model = small_net(len(pack.classes))
    loader = penstock.Loader(
        pack,
        batch_size=max(1, args.batch_size // dist.get_world_size()),
        shuffle=True,
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.normalize(), ops.tensor("f32")],
        return_info=True,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return {"model": model, "optimizer": optimizer, "loader": loader}


class FileCheckpoints:
    """The last checkpoint, in a file that all nodes can read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self) -> dict[str, Any] | None:
        """Called on rank 0."""
        return torch.load(self.path, weights_only=True) if os.path.exists(self.path) else None

    def save(self, state: dict[str, Any]) -> None:
        """Called on every rank. A kill at any moment leaves a complete checkpoint."""
        if dist.get_rank() == 0:
            new = f"{self.path}.{os.getpid()}.new"
            torch.save(state, new)
            os.replace(new, self.path)


def restore(checkpoints: Any, parts: dict[str, Any]) -> tuple[str, tuple[str, int] | None]:
    """Load the last checkpoint, if there is one. Returns a new name for this run, and the run and
    step of the checkpoint. Rank 0 reads it and sends it to the others. If each rank read it, two
    ranks could find different ones: a process of the previous run may still be writing."""
    found: list[Any] = [None, uuid.uuid4().hex]
    if dist.get_rank() == 0:
        found[0] = checkpoints.load()
    dist.broadcast_object_list(found)
    saved, run = found
    if saved is None:
        return run, None
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    return run, (saved["run"], saved["step"])


def train_step(model: Any, optimizer: Any, batch: Any) -> torch.Tensor:
    """The sums of losses, correct answers and samples over all ranks."""
    image, label, info = batch
    scores = model(image)
    # Samples that only pad the last batch have no weight.
    loss = cross_entropy(scores, label, reduction="none")[info.valid].sum()
    optimizer.zero_grad()
    (loss / len(label)).backward()
    optimizer.step()
    correct = (scores.argmax(1) == label)[info.valid].sum()
    sums = torch.stack([loss.detach(), correct, info.valid.sum()])
    dist.all_reduce(sums)
    return sums


def train(args: argparse.Namespace, checkpoints: Any) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = make_parts(args)
    run, resumed = restore(checkpoints, parts)
    log = SampleLog(args.sample_log, run, rank, world, resumed)
    loader, step = parts["loader"], resumed[1] if resumed else 0
    if rank == 0:
        print_start(loader, world)
    model = DistributedDataParallel(parts["model"])
    for epoch in range(loader.epoch, args.epochs):
        # Setting the epoch that was restored keeps the position in it.
        loader.set_epoch(epoch)
        done = batches_done(loader, world)
        progress = Progress(epoch, len(loader), first=done, quiet=rank != 0)
        for batch in loader:
            progress.got_batch()
            step += 1
            # Before the step: when it is saved, every rank has logged it, also one that is killed.
            log.add(step, batch.info)
            loss, correct, n = train_step(model, parts["optimizer"], batch).tolist()
            progress.done_batch(loss / n, int(correct), int(n))
            if step % args.save_every == 0:
                states = {name: part.state_dict() for name, part in parts.items()}
                checkpoints.save({**states, "run": run, "step": step})
            time.sleep(args.pause)
    log.done()


def main() -> None:
    options = elastic_parser(__doc__)
    options.add_argument("--checkpoint", default="elastic.pt")
    args = options.parse_args()
    dist.init_process_group("gloo")
    train(args, FileCheckpoints(args.checkpoint))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
