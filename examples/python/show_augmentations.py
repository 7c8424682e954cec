#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what the operations on images do: each one at three strengths, in one picture.

    python3 examples/python/show_augmentations.py photos/star/0002.jpg sheet.webp
    python3 examples/python/show_augmentations.py - sheet.webp    # an image that is drawn here

Random operations are given ranges with equal ends, or p=1, so that nothing is left to chance; only
the policies are drawn, with three seeds.
"""
import io
import math
import pathlib
import sys
import tempfile

import numpy as np
import penstock
from PIL import Image, ImageDraw, ImageFont

SIDE, GAP, CAPTION, COLUMNS = 80, 4, 16, 3
OPERATIONS = {
    "random_rotation": ["10,10", "30,30 bilinear", "90,90"],
    "random_affine: shear": [f"0,0 shear={s},{s} bilinear" for s in (8, 16, 24)],
    "random_affine: scale": [f"0,0 scale={s},{s} bilinear" for s in (0.6, 0.8, 1.4)],
    "random_perspective": ["0.2 p=1", "0.4 p=1", "0.6 p=1"],
    "color_jitter: brightness": [f"brightness={f},{f}" for f in (0.5, 0.8, 1.5)],
    "color_jitter: contrast": [f"contrast={f},{f}" for f in (0.3, 0.7, 1.8)],
    "color_jitter: saturation": [f"saturation={f},{f}" for f in (0, 0.5, 2)],
    "color_jitter: hue": [f"hue={f},{f}" for f in (-0.2, 0.1, 0.4)],
    "random_posterize": ["4 p=1", "2 p=1", "1 p=1"],
    "random_solarize": ["192 p=1", "128 p=1", "64 p=1"],
    "random_adjust_sharpness": ["0 p=1", "3 p=1", "8 p=1"],
    "adjust_gamma": ["0.5", "1.5", "2.5"],
    "gaussian_blur": ["9 sigma=1", "15 sigma=2", "23 sigma=4"],
    "jpeg": ["40", "15", "5"],
    "random_equalize, invert, gray": ["random_equalize p=1", "random_invert p=1", "grayscale"],
    "rand_augment": ["2 magnitude=3", "2 magnitude=9", "2 magnitude=20"],
    "auto_augment": ["imagenet", "cifar10", "svhn"],
    "aug_mix": ["severity=3", "severity=6", "severity=10"],
}


def scene():
    """A sky with a sun, hills and a house."""
    side = 2 * SIDE
    rows = np.linspace(0, 1, side)[:, None, None]
    sky = (1 - rows) * np.array([40, 90, 200]) + rows * np.array([230, 220, 190])
    picture = Image.fromarray(np.broadcast_to(sky, (side, side, 3)).astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((100, 16, 136, 52), fill=(255, 215, 80))
    for top, color in ((95, (70, 130, 70)), (112, (40, 100, 50))):
        hill = [(x, top + 9 * math.sin(x / (top - 75))) for x in range(side)]
        pen.polygon([*hill, (side, side), (0, side)], fill=color)
    pen.rectangle((38, 84, 88, 132), fill=(190, 90, 60))
    pen.polygon([(32, 84), (63, 54), (94, 84)], fill=(110, 40, 40))
    pen.rectangle((56, 104, 72, 132), fill=(60, 40, 30))
    pen.rectangle((76, 94, 86, 106), fill=(250, 240, 170))
    return picture


def pipeline_of(name, parameters):
    operation = name.split(":")[0]
    if "," in name:  # several operations without strengths
        operation, parameters = parameters, ""
    return f"image: decode | cover {SIDE} | {operation} {parameters} | tensor u8 nhwc"


def tile(pack, pipeline):
    with penstock.Loader(pack, 1, pipeline=pipeline, output="numpy", shuffle=False) as loader:
        return Image.fromarray(next(iter(loader)).image[0])


def sheet_of(pack):
    width, height = 3 * (SIDE + GAP) + 3 * GAP, SIDE + CAPTION + 3 * GAP
    rows = math.ceil(len(OPERATIONS) / COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * width, rows * height), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for i, (name, strengths) in enumerate(OPERATIONS.items()):
        x, y = i % COLUMNS * width + 2 * GAP, i // COLUMNS * height + GAP
        pen.text((x, y), name, fill="black", font=font)
        for k, parameters in enumerate(strengths):
            sheet.paste(tile(pack, pipeline_of(name, parameters)),
                        (x + k * (SIDE + GAP), y + CAPTION))
    return sheet


def main():
    source, target = sys.argv[1:]
    picture = scene() if source == "-" else Image.open(source).convert("RGB")
    with tempfile.TemporaryDirectory() as folder:
        pack = pathlib.Path(folder) / "one.pen"
        file = io.BytesIO()
        picture.save(file, "PNG")
        penstock.write(pack, [{"image": file.getvalue()}], {"image": "image"})
        sheet = sheet_of(pack)
    sheet.save(target, quality=70)
    print(f"{len(OPERATIONS)} operations in {target}")


if __name__ == "__main__":
    main()
