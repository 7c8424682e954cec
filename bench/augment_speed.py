#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Augmentations: CPU time per image of 224 x 224 pixels, beside other libraries; one table.

    build/venv/bin/python bench/augment_speed.py [--rounds N] [--photos DIR] [--only NAME,...]

penstock: the CPU time of a sample with the operation, less that of the same loader without it, with
one thread and a pack of raw pixels (`penstock bench`). The others call their operation on images in
memory, with one thread. Medians of rounds in which all take turns. The environment of the others is
made in build/peers (bench/environments.toml, augment).
Writes build/bench/augment.jsonl and augment.md.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy
from augment.cases import CASES
from compare import environments, places, report
from compare.rounds import say
from PIL import Image

SIDE, IMAGES = 224, 64
LIBRARIES = ("pillow", "torchvision", "albumentations")
PENSTOCK = places.BUILD / "penstock"


def crop(file):
    with Image.open(file) as picture:
        picture = picture.convert("RGB")
        side = min(picture.size)
        return picture.resize((SIDE, SIDE), box=(0, 0, side, side))


def inputs(folder, photos):
    """The same images as an array, and as a pack of raw pixels."""
    shutil.rmtree(folder, ignore_errors=True)
    pictures = [crop(file) for file in places.photo_files(photos, IMAGES)]
    (folder / "png" / "all").mkdir(parents=True)
    numpy.save(folder / "images.npy", numpy.stack([numpy.asarray(p) for p in pictures]))
    for i, picture in enumerate(pictures):
        picture.save(folder / "png" / "all" / f"{i:03}.png")
    pack = folder / "raw.pen"
    subprocess.run([PENSTOCK, "pack", folder / "png", "-o", pack, "--mode", "raw"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "images.npy", pack


def own_ms(pack, operation):
    pipeline = " | ".join(filter(None, ("decode", f"center_crop {SIDE}", operation, "tensor u8")))
    done = subprocess.run(
        [PENSTOCK, "bench", pack, "--threads", "1", "--batch", "16", "--seconds", "1", "--pipeline",
         pipeline, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["cpu_seconds_per_1000_samples"]


def own_side(pack, names):
    nothing = own_ms(pack, "")
    return {name: own_ms(pack, CASES[name]) - nothing for name in names}


def other_side(python, name, images):
    done = subprocess.run([python, places.BENCH / "augment" / "side.py", name, images], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measured(options, images, pack, python):
    found = {}
    for number in range(options.rounds):
        sides = {"penstock": own_side(pack, options.only)}
        sides |= {name: other_side(python, name, images) for name in LIBRARIES}
        for side, times in sides.items():
            for case, ms in times.items():
                found.setdefault((case, side), []).append(ms)
        say(f"  round {number + 1} of {options.rounds}")
    return [{"kind": "augment", "operation": case, "side": side, "ms": statistics.median(times),
             "least": min(times), "most": max(times)}
            for (case, side), times in found.items() if case in options.only]


def table(rows, names):
    ms = {(row["operation"], row["side"]): row["ms"] for row in rows}
    lines = [["operation, ms", "penstock", *LIBRARIES]]
    for name in names:
        cells = (ms.get((name, side)) for side in ("penstock", *LIBRARIES))
        lines.append([name, *("" if cell is None else f"{cell:.3f}" for cell in cells)])
    return report.table(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES),
                        help="names of operations, separated by commas")
    return parser.parse_args()


def main():
    options = arguments()
    why = environments.setup("augment")
    if why:
        print(f"the other libraries are not here: {why}", file=sys.stderr)
        return 1
    python = environments.python_of("augment")
    images, pack = inputs(places.WORK / "augment", options.photos)
    rows = measured(options, images, pack, python)
    text = table(rows, options.only)
    (places.WORK / "augment.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [places.machine(), *rows]), encoding="utf-8")
    (places.WORK / "augment.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
