# SPDX-License-Identifier: Apache-2.0
"""Train a small network on a folder of photos, with torch's DataLoader.

    python3 examples/make_photos.py photos 600
    python3 examples/python/train_dataloader.py photos

train.py is the same with a pack; `diff` shows what changes.
"""

from __future__ import annotations

import argparse
import math
import pathlib

import numpy
import torch
from common import Progress, parser, small_net
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def random_resized_crop(image: Image.Image, size: int) -> Image.Image:
    for _ in range(10):
        area = image.width * image.height * float(torch.empty(1).uniform_(0.08, 1))
        ratio = math.exp(float(torch.empty(1).uniform_(math.log(3 / 4), math.log(4 / 3))))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= image.width and 0 < h <= image.height:
            break
    else:
        w = h = min(image.size)
    x = int(torch.randint(image.width - w + 1, (1,)))
    y = int(torch.randint(image.height - h + 1, (1,)))
    return image.resize((size, size), Image.Resampling.BILINEAR, (x, y, x + w, y + h))


class Photos(Dataset):
    def __init__(self, folder: str, size: int) -> None:
        self.size = size
        self.paths = sorted(pathlib.Path(folder).glob("*/*.jpg"))
        self.classes = sorted({path.parent.name for path in self.paths})

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int):
        image = Image.open(self.paths[i]).convert("RGB")
        image = random_resized_crop(image, self.size)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1)
        return (pixels / 255 - MEAN) / STD, self.classes.index(self.paths[i].parent.name)


def make_loader(args: argparse.Namespace) -> tuple[DataLoader, list[str]]:
    photos = Photos(args.path, args.size)
    loader = DataLoader(
        photos,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    return loader, photos.classes


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
    options = parser(__doc__, "a folder of classes")
    options.add_argument("--size", type=int, default=64, help="pixels of a side")
    options.add_argument("--workers", type=int, default=2, help="processes that decode")
    options.add_argument("--save", help="where to put the trained network, for evaluate.py")
    args = options.parse_args()
    loader, classes = make_loader(args)
    model = small_net(len(classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(args.epochs):
        train_epoch(loader, model, optimizer, epoch)
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
