#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws colored shapes into a WebDataset tar: image, caption, mask, and boxes with their classes.

    python3 examples/make_shapes.py shapes.tar [N]

A sample has KEY.jpg, KEY.txt ("a red circle and a blue square"), KEY.mask.png (0 is the
background, 1 a circle, 2 a square), KEY.boxes.npy (x0, y0, x1, y1 of each shape) and KEY.labels.npy
(0 for a circle, 1 for a square). Needs NumPy and Pillow (`pip install numpy pillow`; `./dev setup`
puts them into build/venv).
"""
import io
import random
import sys
import tarfile

try:
    import numpy
    from PIL import Image, ImageDraw
except ImportError:
    sys.exit("needs Pillow: run it with build/venv/bin/python, or pip install numpy pillow")

SHAPES = ("circle", "square")
COLORS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 70, 220)}


def draw(rng):
    """An image, its mask, and (color, shape, box) of each shape."""
    size = rng.randint(120, 200), rng.randint(100, 180)
    image, mask = Image.new("RGB", size, (rng.randrange(90),) * 3), Image.new("L", size)
    found = []
    for color in rng.sample(sorted(COLORS), rng.randint(1, 3)):
        number, side = rng.randrange(len(SHAPES)), rng.randint(24, 60)
        x, y = rng.randrange(size[0] - side), rng.randrange(size[1] - side)
        box = x, y, x + side, y + side
        for canvas, fill in ((image, COLORS[color]), (mask, number + 1)):
            pen = ImageDraw.Draw(canvas)
            (pen.ellipse if number == 0 else pen.rectangle)((*box[:2], box[2] - 1, box[3] - 1),
                                                            fill=fill)
        found.append((color, number, box))
    return image, mask, found


def file_of(image, kind):
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def array_of(rows, dtype):
    file = io.BytesIO()
    numpy.save(file, numpy.array(rows, dtype))
    return file.getvalue()


def add(tar, key, image, mask, found):
    caption = " and ".join(f"a {color} {SHAPES[number]}" for color, number, _ in found)
    for suffix, data in (("jpg", file_of(image, "JPEG")), ("txt", caption.encode()),
                         ("mask.png", file_of(mask, "PNG")),
                         ("boxes.npy", array_of([box for *_, box in found], "f4")),
                         ("labels.npy", array_of([number for _, number, _ in found], "i8"))):
        member = tarfile.TarInfo(f"{key}.{suffix}")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "shapes.tar"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = random.Random(0)
    with tarfile.open(path, "w") as tar:
        for i in range(count):
            add(tar, f"{i:06d}", *draw(rng))
    print(f"{count} samples in {path}")


if __name__ == "__main__":
    main()
