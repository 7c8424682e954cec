#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a small folder of JPEGs by class, to try penstock on.

    python3 examples/make_photos.py photos [N]

Needs Pillow (`pip install pillow`; `./dev setup` puts it into build/venv).
"""
import math
import random
import sys
from pathlib import Path

try:
    from PIL import Image, ImageDraw
except ImportError:
    sys.exit("this draws with Pillow: run it with build/venv/bin/python, or pip install pillow")

SHAPES = ("circle", "square", "star")


def star(x, y, size):
    points = []
    for k in range(10):
        r = size if k % 2 == 0 else size * 0.4
        a = math.pi * k / 5
        points.append((x + r * math.sin(a), y - r * math.cos(a)))
    return points


def draw(shape, rng):
    image = Image.radial_gradient("L").resize((rng.randint(300, 600), rng.randint(250, 500)))
    tints = [rng.random() for _ in range(3)]
    image = Image.merge("RGB", [image.point([int(v * k) for v in range(256)]) for k in tints])
    pen = ImageDraw.Draw(image)
    for _ in range(rng.randint(2, 6)):
        x, y = rng.randrange(image.width), rng.randrange(image.height)
        size, colour = rng.randint(20, 90), tuple(rng.randrange(256) for _ in range(3))
        box = (x - size, y - size, x + size, y + size)
        if shape == "circle":
            pen.ellipse(box, fill=colour)
        elif shape == "square":
            pen.rectangle(box, fill=colour)
        else:
            pen.polygon(star(x, y, size), fill=colour)
    return image


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "photos")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = random.Random(0)
    for i in range(count):
        shape = SHAPES[i % len(SHAPES)]
        path = folder / shape / f"{i:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(shape, rng).save(path, quality=88)
    print(f"{count} images in {folder}/")


if __name__ == "__main__":
    main()
