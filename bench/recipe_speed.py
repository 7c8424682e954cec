#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipe of timm and DeiT, end to end: penstock against a DataLoader with Pillow; one table.

    build/venv/bin/python bench/recipe_speed.py [--rounds N] [--images N] [--photos DIR]

A bicubic random crop of 224 pixels, a flip, RandAugment (2 operations, magnitude 9), normalization,
random erasing, then mixup or CutMix of the batch with soft targets. penstock has two threads, the
DataLoader two workers; both return batches of 64 to the main process. Pillow does what torchvision
does to its images, torch mixes. Both take turns; the figures are medians of the rounds. CPU time is
that of all processes. Writes build/bench/recipe.jsonl and recipe.md.
"""

import argparse
import json
import math
import pathlib
import random
import resource
import statistics
import sys
import time

import numpy as np
import torch
from common import places, say
from common.run import Packs, penstock
from penstock.lab.loaders import report
from PIL import Image, ImageEnhance, ImageOps
from torch.utils.data import DataLoader

SIDE, BATCH, CLASSES = 224, 64, 1000
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
PIPELINE = (
    f"image: decode | random_resized_crop {SIDE} bicubic | hflip | rand_augment 2 9 | normalize | "
    "random_erasing 0.25 | tensor f32 nchw | mixup 0.8 p=0.5 | cutmix 1 p=0.5; "
    f"label: one_hot {CLASSES} label_smoothing=0.1"
)

# ---- with Pillow and torch -------------------------------------------------------------------


def affine(matrix):
    return lambda image: image.transform(image.size, Image.Transform.AFFINE, matrix)


def enhanced(kind):
    factor = 1 + random.choice((-1, 1)) * 0.9 * 9 / 30
    return lambda image: kind(image).enhance(factor)


def rand_augment(image):
    """Two of torchvision's operations at magnitude 9 of 30."""
    sign, share = random.choice((-1, 1)), 9 / 30
    shear, shift, center = sign * 0.3 * share, sign * 150 / 331 * SIDE * share, SIDE / 2
    operations = (
        lambda image: image, affine((1, shear, -shear * center, 0, 1, 0)),
        affine((1, 0, 0, shear, 1, -shear * center)), affine((1, 0, shift, 0, 1, 0)),
        affine((1, 0, 0, 0, 1, shift)), lambda image: image.rotate(sign * 30 * share),
        enhanced(ImageEnhance.Brightness), enhanced(ImageEnhance.Color),
        enhanced(ImageEnhance.Contrast), enhanced(ImageEnhance.Sharpness),
        lambda image: ImageOps.posterize(image, 8 - round(4 * share)),
        lambda image: ImageOps.solarize(image, int(255 * (1 - share))), ImageOps.autocontrast,
        ImageOps.equalize,
    )
    for _ in range(2):
        image = random.choice(operations)(image)
    return image


def random_box(width, height, scale, ratio):
    for _ in range(10):
        area = width * height * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    return 0, 0, width, height


class Photos:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as file:
            image = file.convert("RGB")
        box = random_box(*image.size, (0.08, 1), (3 / 4, 4 / 3))
        image = image.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(rand_augment(image))).permute(2, 0, 1)
        pixels = pixels.contiguous().float().div_(255).sub_(MEAN[:, None, None])
        pixels.div_(STD[:, None, None])
        if random.random() < 0.25:
            x, y, right, below = random_box(SIDE, SIDE, (0.02, 0.33), (0.3, 3.3))
            pixels[:, y:below, x:right] = 0
        return pixels, i % CLASSES


def mixed(images, labels):
    """As torchvision's RandomChoice([MixUp(0.8), CutMix(1)])."""
    targets = torch.nn.functional.one_hot(labels, CLASSES).float().mul_(0.9).add_(0.1 / CLASSES)
    if random.random() < 0.5:
        share = random.betavariate(0.8, 0.8)
        images = images.roll(1, 0).mul_(1 - share).add_(images.mul(share))
    else:
        half, x, y = math.sqrt(random.random()) / 2, random.randrange(SIDE), random.randrange(SIDE)
        reach = int(half * SIDE)
        x1, x2, y1, y2 = max(x - reach, 0), min(x + reach, SIDE), max(y - reach, 0), min(
            y + reach, SIDE)
        images[..., y1:y2, x1:x2] = images.roll(1, 0)[..., y1:y2, x1:x2]
        share = 1 - (x2 - x1) * (y2 - y1) / SIDE**2
    return images, targets.roll(1, 0).mul_(1 - share).add_(targets.mul(share))


def by_dataloader(files):
    for images, labels in DataLoader(Photos(files), BATCH, shuffle=True, num_workers=2,
                                     drop_last=True):
        yield mixed(images, labels)


def by_penstock(loader):
    for batch in loader:
        yield batch.image, batch.label


# ---- rounds ----------------------------------------------------------------------------------


def cpu_seconds():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measured(batches):
    """Images per second, and CPU milliseconds of an image."""
    start, cpu, n = time.perf_counter(), cpu_seconds(), 0
    for images, targets in batches:
        assert images.shape[1:] == (3, SIDE, SIDE) and targets.shape == (len(images), CLASSES)
        n += len(images)
    return n / (time.perf_counter() - start), 1000 * (cpu_seconds() - cpu) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    options = parser.parse_args()
    torch.set_num_threads(2)
    pack = Packs(options.photos, places.PACKS).of_count(options.images)
    files = places.photo_files(options.photos, options.images)
    found = {"penstock, 2 threads": [], "DataLoader and Pillow, 2 workers": []}
    ours, theirs = found.values()
    with penstock.Loader(pack, BATCH, shuffle=True, drop_last=True, threads=2,
                          pipeline=PIPELINE) as loader:
        for number in range(options.rounds):
            ours.append(measured(by_penstock(loader)))
            theirs.append(measured(by_dataloader(files)))
            say(f"  round {number + 1}: {ours[-1][0]:.0f} and {theirs[-1][0]:.0f} images/s")
    rows = [{"kind": "recipe", "loader": name, "images_per_second":
             statistics.median(rate for rate, _ in values), "cpu_ms":
             statistics.median(cpu for _, cpu in values)} for name, values in found.items()]
    ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs, strict=True))
    lines = [["recipe of timm, 224 pixels", "images/s", "CPU ms per image"]]
    lines += [[r["loader"], f"{r['images_per_second']:,.0f}", f"{r['cpu_ms']:.2f}"] for r in rows]
    text = report.table(lines) + (
        f"\n\n- penstock is {ratio:.1f} times as fast (aim: 6), with "
        f"{rows[1]['cpu_ms'] / rows[0]['cpu_ms']:.1f} times less CPU time\n")
    (places.WORK / "recipe.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (places.WORK / "recipe.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
