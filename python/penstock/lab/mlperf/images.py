# SPDX-License-Identifier: Apache-2.0
"""JPEG files of a given mean size, made from photographs."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import penstock

from ..errors import Absent, LabError
from ..experiment.inputs import is_pack

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
SIDE = 1024  # pixels of the longer side, as in Open Images
LARGEST_SIDE = 4096
QUALITIES = (50, 98)


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        raise Absent("images are generated with Pillow: pip install 'penstock[lab]'") from None
    return PIL.Image


def encoded(source: str) -> Iterator[bytes]:
    """The images of a pack or of a folder, as files."""
    if is_pack(source):
        pack = penstock.open(source)
        field = next((one.name for one in pack.fields if one.type == "image"), None)
        if field is None:
            raise LabError(f"no image field in pack '{source}'")
        yield from (pack.extract(number, field) for number in range(len(pack)))
        return
    files = sorted(file for file in pathlib.Path(source).rglob("*")
                   if file.suffix.lower() in SUFFIXES)
    if not files:
        raise LabError(f"no images in '{source}': expected files that end in "
                       f"{', '.join(SUFFIXES)}")
    yield from (file.read_bytes() for file in files)


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
    image = _pillow().open(io.BytesIO(data)).convert("RGB")
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
