# SPDX-License-Identifier: Apache-2.0
"""Packs of any number of images and of any size of image, made from the images of a source."""

from __future__ import annotations

import io
import itertools
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

import penstock

from ..experiment import inputs
from ..experiment.lock import lock
from ..images.encoded import endless, pillow

CLASSES = 1000
THUMBNAIL_SIDE, THUMBNAIL_BLOCK = 64, 1024  # pixels; samples
DIFFERENT_THUMBNAILS = 1000


def _opened(data: bytes) -> Any:
    return pillow().open(io.BytesIO(data)).convert("RGB")


def _jpeg(image: Any, quality: int) -> bytes:
    written = io.BytesIO()
    image.save(written, "JPEG", quality=quality)
    return written.getvalue()


def _thumbnail(data: bytes) -> bytes:
    return _jpeg(_opened(data).resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE)), 85)


def picture(images: Iterator[bytes], side: int) -> Any:
    """4:3, SIDE pixels wide: the next image shrunk, or as many as are needed side by side."""
    height = side * 3 // 4
    part = _opened(next(images))
    if part.width >= side and part.height >= height:
        return part.resize((side, height))
    whole, x, y = pillow().new("RGB", (side, height)), 0, 0
    while y < height:
        lowest = height
        while x < side:
            whole.paste(part, (x, y))
            x, lowest = x + part.width, min(lowest, part.height)
            part = _opened(next(images))
        x, y = 0, y + lowest
    return whole


class Packs:
    """Packs in a folder of WORK that is named by the identity of the source. A pack that exists is
    not made again."""

    def __init__(self, source: str | os.PathLike[str], work: pathlib.Path) -> None:
        self.source = os.fspath(source)
        self.folder = work / str(inputs.describe(source)["id"])[:12]
        lock(self.folder)

    def _packed(self, name: str, images: Iterable[bytes], **settings: Any) -> pathlib.Path:
        path = self.folder / f"{name}.pen"
        if not inputs.is_pack(path):
            shutil.rmtree(path, ignore_errors=True)  # of a process that was killed
            schema = {"image": "image", "label": "i64"}
            with penstock.Writer(path, schema, **settings) as writer:
                for number, data in enumerate(images):
                    writer.add(image=data, label=number % CLASSES)
        return path

    def of_count(self, count: int) -> pathlib.Path:
        """COUNT images: those of the source, over and over again."""
        return self._packed(f"images-{count}", itertools.islice(endless(self.source), count))

    def thumbnails(self, count: int) -> pathlib.Path:
        made = map(_thumbnail, itertools.islice(endless(self.source), DIFFERENT_THUMBNAILS))
        return self._packed(f"thumbnails-{count}", itertools.islice(itertools.cycle(made), count),
                            block_samples=THUMBNAIL_BLOCK)

    def of_side(self, side: int, count: int) -> pathlib.Path:
        """COUNT images that are SIDE pixels wide."""
        images = endless(self.source)
        made = (_jpeg(picture(images, side), 92) for _ in range(count))
        return self._packed(f"side-{side}-{count}", made)
