# SPDX-License-Identifier: Apache-2.0
"""Train a small 3D network on clips, and evaluate it on several clips and crops of each.

    python3 examples/make_clips.py clips.pen 240
    python3 examples/python/train_clips.py clips.pen

A batch is [N, 3, frames, size, size], channels last in memory.
"""

from __future__ import annotations

import argparse

import penstock
import torch
from common import Progress, parser
from penstock import ops
from torch import nn
from torch.nn.functional import cross_entropy


def small_net(classes: int) -> nn.Module:
    """Three convolutions over time, height and width, channels last as the batches lie."""
    torch.manual_seed(2)
    layers: list[nn.Module] = []
    for channels_in, channels in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv3d(channels_in, channels, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, classes)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last_3d)


def make_loaders(args: argparse.Namespace) -> tuple[penstock.Loader, penstock.Loader, list[str]]:
    """The first four fifths for training, the rest for evaluation."""
    pack = penstock.open(args.path)
    cut = len(pack) * 4 // 5
    end = [ops.normalize(), ops.tensor("f32")]
    train = penstock.Loader(
        pack,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        subset=range(cut),
        pipeline=[
            ops.decode(),
            ops.clip(args.frames, args.stride),
            ops.random_resized_crop(args.size, scale=(0.5, 1)),
            *end,
        ],
        threads=args.threads,
    )
    # Two clips of each sample in three crops each: [N, 6, 3, frames, size, size].
    test = penstock.Loader(
        pack,
        batch_size=args.batch_size,
        subset=range(cut, len(pack)),
        pipeline=[
            ops.decode(),
            ops.clip(args.frames, args.stride, "center", n=2),
            ops.resize(args.size),
            ops.three_crop(args.size),
            *end,
        ],
        threads=args.threads,
        return_info=True,
    )
    return train, test, pack.classes


def train_epoch(loader, model, optimizer, epoch: int) -> None:
    progress = Progress(epoch, len(loader))
    for video, label in loader:
        progress.got_batch()
        scores = model(video)
        loss = cross_entropy(scores, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct = int((scores.argmax(1) == label).sum())
        progress.done_batch(loss.item(), correct, len(label))


@torch.no_grad()
def evaluate(loader, model) -> None:
    """The mean of the scores of all views counts; what only fills up the last batch does not."""
    correct = total = 0
    for batch in loader:
        views = batch.video.shape[1]
        scores = model(batch.video.flatten(0, 1)).unflatten(0, (-1, views)).mean(1)
        right = scores.argmax(1) == batch.label
        correct += int(right[: batch.info.n_valid].sum())
        total += batch.info.n_valid
    print(f"Evaluation  Prec@1 {100 * correct / total:.2f}  ({correct} of {total})")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--frames", type=int, default=8, help="of a clip")
    options.add_argument("--stride", type=int, default=2, help="frames from one to the next")
    options.add_argument("--size", type=int, default=40, help="pixels of a side")
    options.add_argument("--threads", type=int, help="that decode; all cores unless given")
    options.set_defaults(epochs=4)
    args = options.parse_args()
    train, test, classes = make_loaders(args)
    model = small_net(len(classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(args.epochs):
        train.set_epoch(epoch)
        train_epoch(train, model, optimizer, epoch)
        evaluate(test, model)


if __name__ == "__main__":
    main()
