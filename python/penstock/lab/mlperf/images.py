# SPDX-License-Identifier: Apache-2.0
"""JPEG files of a given mean size, made from photographs."""

from __future__ import annotations

import io
import os
import pathlib
from typing import Any

from ..images.encoded import encoded, pillow

SIDE = 1024  # pixels of the longer side, as in Open Images
LARGEST_SIDE = 4096
QUALITIES = (50, 98)


def _jpeg(image: Any, quality: int) -> bytes:
    written = io.BytesIO()
    image.save(written, "JPEG", quality=quality)
    return written.getvalue()


def _at_quality(image: Any, size: int) -> bytes:
    """The image as a file whose size is as near to SIZE as its quality allows."""
    low, high = QUALITIES
    found = [_jpeg(image, high)]
    while high - low > 1 and len(found[0]) > size:
        middle = (low + high) // 2
        found.append(_jpeg(image, middle))
        low, high = (low, middle) if len(found[-1]) > size else (middle, high)
    return min(found, key=lambda data: abs(len(data) - size))


def of_size(data: bytes, size: int) -> bytes:
    """A photograph as a JPEG file of about SIZE bytes: its sides grow until that is possible."""
    image = pillow().open(io.BytesIO(data)).convert("RGB")
    side = SIDE
    while True:
        factor = side / max(image.size)
        scaled = image.resize([max(1, round(n * factor)) for n in image.size])
        found = _at_quality(scaled, size)
        if len(found) >= 0.9 * size or side >= LARGEST_SIDE:
            return found
        side = side * 5 // 4


def generate(source: str, folder: pathlib.Path, size: int, count: int) -> pathlib.Path:
    """COUNT files of about SIZE bytes in FOLDER; those of an earlier call are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(encoded(source)):
        if number == count:
            break
        file = folder / f"{number:06}.jpg"
        if not file.exists():
            part = file.with_suffix(".part")
            part.write_bytes(of_size(data, size))
            os.replace(part, file)
    return folder
