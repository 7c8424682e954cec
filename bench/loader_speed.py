#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the loader is beside PyTorch's DataLoader with Pillow.

    build/venv/bin/python bench/loader_speed.py [--photos DIR] [--rounds N] [--threads N]

Both sides give uint8 batches of 256 for RandomResizedCrop 224 (bilinear) and a random flip, from
the same photographs in the page cache: penstock.Loader with N threads from a default pack, torch's
DataLoader with N worker processes from the folder (Pillow decodes, crops and resizes as
torchvision's transforms do on PIL images). An epoch is one pass; rounds take turns; the first epoch
of each side is not counted. A figure is the median of the rounds in images per second of elapsed
time, the ratio that of the medians, the spread that of the ratios of one round. Ends with 1 when
the ratio is under 2.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

import penstock
import torch
from loaders.pil import Transform
from penstock import ops

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZE, BATCH, NEEDED = 224, 256, 2.0


class Folder(torch.utils.data.Dataset):
    def __init__(self, files, labels):
        self.files, self.labels = files, labels
        self.transform = Transform({"size": SIZE, "short": None, "transform": "train"})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        pixels = torch.from_numpy(self.transform.pixels(self.files[i]))
        return pixels.permute(2, 0, 1), self.labels[i]


def one_epoch(loader):
    start, n = time.perf_counter(), 0
    for image, _ in loader:
        n += len(image)
    return n / (time.perf_counter() - start)


def make_pack(photos, work):
    pack = work / "photos.pen"
    if not (pack / "manifest").exists():
        subprocess.run([sys.executable, "-m", "penstock", "pack", photos, "-o", pack], check=True)
    return pack


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("PENSTOCK_PHOTOS") or ROOT.parent / "shared" / "data" / "photos"
    parser.add_argument("--photos", type=pathlib.Path, default=default)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    classes = sorted(p.name for p in options.photos.iterdir() if p.is_dir())
    files = sorted(p for c in classes for p in (options.photos / c).iterdir())
    if not files:
        sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
    labels = [classes.index(p.parent.name) for p in files]
    torch.set_num_threads(1)
    theirs = torch.utils.data.DataLoader(
        Folder(files, labels), batch_size=BATCH, shuffle=True, num_workers=options.threads,
        persistent_workers=True, prefetch_factor=2)
    ours = penstock.Loader(
        make_pack(options.photos, options.work), batch_size=BATCH, shuffle=True, drop_last=False,
        pipeline=[ops.decode(), ops.random_resized_crop(SIZE), ops.hflip(), ops.tensor("u8")],
        threads=options.threads, output="torch")
    rates = {"penstock": [], "DataLoader": []}
    for number in range(options.rounds + 1):
        for name, loader in (("penstock", ours), ("DataLoader", theirs)):
            rate = one_epoch(loader) * (len(files) / (len(ours) * BATCH) if loader is ours else 1)
            if number:
                rates[name].append(rate)
    ratios = sorted(a / b for a, b in zip(rates["penstock"], rates["DataLoader"]))
    mid = {name: statistics.median(values) for name, values in rates.items()}
    ratio = mid["penstock"] / mid["DataLoader"]
    print(f"{len(files)} photographs, RandomResizedCrop {SIZE} + flip, {options.threads} threads "
          f"against {options.threads} workers, {options.rounds} rounds")
    for name, value in mid.items():
        print(f"  {name:<12}{value:8.0f} images/s")
    print(f"  ratio {ratio:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})")
    return 0 if ratio >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
