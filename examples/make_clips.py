#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a small pack of clips, to try penstock on: a ball that goes up, down, left or right, which
no single frame tells.

    python3 examples/make_clips.py clips.pen [N]

Needs Pillow (`pip install pillow`; `./dev setup` puts it into build/venv). Frames and videos of
your own are packed by `penstock pack`: docs/how-to/video.md.
"""
import io
import random
import sys

import penstock

try:
    from PIL import Image, ImageDraw
except ImportError:
    sys.exit("this draws with Pillow: run it with build/venv/bin/python, or pip install pillow")

WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
FPS = 25


def frame(x, y, colour, ground):
    image = Image.new("RGB", (64, 48), ground)
    ImageDraw.Draw(image).ellipse((x - 6, y - 6, x + 6, y + 6), fill=colour)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()


def clip(way, rng):
    """20 to 40 frames; the ball comes in again on the other side."""
    dx, dy = (rng.uniform(0.8, 1.6) * step for step in WAYS[way])
    x, y = rng.uniform(0, 64), rng.uniform(0, 48)
    colours = [tuple(rng.randrange(a, a + 100) for _ in range(3)) for a in (150, 0)]
    n = rng.randint(20, 40)
    return [frame((x + dx * i) % 64, (y + dy * i) % 48, *colours) for i in range(n)]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "clips.pen"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 240
    rng = random.Random(0)
    schema = {"video": "clip", "label": "i64"}
    with penstock.Writer(path, schema, classes=list(WAYS), class_field="label") as writer:
        for i in range(count):
            frames = clip(list(WAYS)[i % len(WAYS)], rng)
            times = [k * 10**9 // FPS for k in range(len(frames))]
            writer.add(key=f"{i:05d}", video=(frames, times), label=i % len(WAYS))
    print(f"{count} clips in {path}")


if __name__ == "__main__":
    main()
