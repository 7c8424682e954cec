# SPDX-License-Identifier: Apache-2.0
"""Train a small network on a pack.

    python3 examples/make_photos.py photos 600
    penstock pack photos -o photos.pen
    python3 examples/python/train.py photos.pen

train_dataloader.py is the same with torch's DataLoader; `diff` shows what changes.
"""

from __future__ import annotations

import argparse

import penstock
import torch
from common import Progress, parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


def make_loader(args: argparse.Namespace) -> tuple[penstock.Loader, list[str]]:
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
        threads=args.threads,
    )
    return loader, pack.classes


def train_epoch(loader, model, optimizer, epoch: int) -> None:
    progress = Progress(epoch, len(loader))
    for image, label in loader:
        progress.got_batch()
        scores = model(image)
        loss = cross_entropy(scores, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct = int((scores.argmax(1) == label).sum())
        progress.done_batch(loss.item(), correct, len(label))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--size", type=int, default=64, help="pixels of a side")
    options.add_argument("--threads", type=int, help="that decode; all cores unless given")
    options.add_argument("--save", help="where to put the trained network, for evaluate.py")
    args = options.parse_args()
    loader, classes = make_loader(args)
    model = small_net(len(classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(args.epochs):
        loader.set_epoch(epoch)
        train_epoch(loader, model, optimizer, epoch)
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
