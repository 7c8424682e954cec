# SPDX-License-Identifier: Apache-2.0
"""Train, save in the middle of an epoch, and go on later, on any number of processes.

    python3 examples/python/resume.py photos.pen --checkpoint run.pt --stop-after 25
    python3 examples/python/resume.py photos.pen --checkpoint run.pt
    torchrun --nproc-per-node 2 examples/python/resume.py photos.pen --checkpoint run.pt

A checkpoint has the network, the optimizer and the loader's state: a dict of plain numbers and
texts, the same on every rank, counted in samples. --batch-size is of all ranks together, so that
training is the same whatever their number.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import penstock
import torch
import torch.distributed as dist
from common import Progress, batches_done, parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


def place() -> tuple[int, int]:
    """Rank and number of ranks."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def make_parts(args: argparse.Namespace) -> dict[str, Any]:
    """All that has a state."""
    pack = penstock.open(args.path)
    model = small_net(len(pack.classes))
    loader = penstock.Loader(
        pack,
        batch_size=max(1, args.batch_size // place()[1]),
        shuffle=True,
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.normalize(), ops.tensor("f32")],
        return_info=True,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    return {"model": model, "optimizer": optimizer, "loader": loader}


def save(path: str, parts: dict[str, Any]) -> None:
    """Whole or not at all: under another name first."""
    torch.save({name: part.state_dict() for name, part in parts.items()}, path + ".new")
    os.replace(path + ".new", path)


def restore(path: str, parts: dict[str, Any]) -> None:
    for name, state in torch.load(path, weights_only=True).items():
        parts[name].load_state_dict(state)
    loader = parts["loader"]
    if place()[0] == 0:
        at = loader.state_dict()["position"]
        print(f"Resumed at epoch {loader.epoch}, sample {at} of {loader.samples}", flush=True)


def step(parts: dict[str, Any], batch: Any) -> torch.Tensor:
    """Trains on a batch; gives sums over all ranks: of losses, of right answers, of samples."""
    model, optimizer, (image, label, info) = parts["model"], parts["optimizer"], batch
    scores = model(image)
    # What only fills up the last batch has no weight.
    loss = cross_entropy(scores, label, reduction="none")[info.valid].sum()
    optimizer.zero_grad()
    (loss / len(label)).backward()
    correct = (scores.argmax(1) == label)[info.valid].sum()
    sums = torch.stack([loss.detach(), correct, info.valid.sum()])
    if dist.is_initialized():
        dist.all_reduce(sums)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
    optimizer.step()
    return sums


def train(args: argparse.Namespace, parts: dict[str, Any]) -> None:
    loader, (rank, world) = parts["loader"], place()
    batches = 0
    for epoch in range(loader.epoch, args.epochs):
        # Naming the epoch that was restored keeps the place in it.
        loader.set_epoch(epoch)
        done = batches_done(loader, world)
        progress = Progress(epoch, len(loader), first=done, quiet=rank != 0)
        for batch in loader:
            progress.got_batch()
            loss, correct, n = step(parts, batch).tolist()
            progress.done_batch(loss / n, int(correct), int(n))
            batches += 1
            if rank == 0 and batches % args.save_every == 0:
                save(args.checkpoint, parts)
            if batches == args.stop_after:
                return
    if rank == 0:
        save(args.checkpoint, parts)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--checkpoint", default="run.pt")
    options.add_argument("--save-every", type=int, default=5, help="batches")
    options.add_argument("--stop-after", type=int, help="batches; as if it were interrupted")
    args = options.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    parts = make_parts(args)
    if os.path.exists(args.checkpoint):
        restore(args.checkpoint, parts)
    train(args, parts)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
