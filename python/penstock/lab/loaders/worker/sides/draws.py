# SPDX-License-Identifier: Apache-2.0
"""What RandomResizedCrop draws, and where Resize + CenterCrop cuts."""

from __future__ import annotations

import math
import random

SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
CORNER = 32  # pixels per side that are compared if nothing is resized


def random_box(width, height):
    """x, y, w, h by torchvision's algorithm."""
    for _ in range(10):
        area = width * height * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = width, height
    if w / h < RATIO[0]:
        h = max(1, round(w / RATIO[0]))
    elif w / h > RATIO[1]:
        w = max(1, round(h * RATIO[1]))
    return (width - w) // 2, (height - h) // 2, w, h


def resized(width: int, height: int, short: int) -> tuple[int, int]:
    """The size that Resize(short) gives."""
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short


def centre(width: int, height: int, size: int) -> tuple[int, int]:
    """x, y of CenterCrop(size)."""
    return round((width - size) / 2.0), round((height - size) / 2.0)
