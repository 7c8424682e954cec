# SPDX-License-Identifier: Apache-2.0
"""All images of a folder or a pack, from their headers, and a sample of them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import LabError
from ..experiment import inputs


class Item(NamedTuple):
    """An image.

    coarseness  the mean of its quantization tables; 0 if it has none
    channels    1 for a gray image, otherwise 3"""

    key: str
    bytes: int
    width: int
    height: int
    coarseness: float
    channels: int = 3


def _measured(key: str, size: int, opened: Any) -> Item:
    tables = getattr(opened, "quantization", None) or {}
    values = [value for table in tables.values() for value in table]
    coarse = sum(values) / len(values) if values else 0.0
    channels = 1 if opened.mode in ("1", "L", "I", "I;16") else 3
    return Item(key, size, opened.width, opened.height, coarse, channels)


class Folder:
    """The images below a directory."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def items(self) -> list[Item]:
        from PIL import Image, UnidentifiedImageError

        found = []
        for file in sorted(self.path.rglob("*")):
            if not file.is_file():
                continue
            try:
                with Image.open(file) as opened:
                    key = os.fspath(file.relative_to(self.path))
                    found.append(_measured(key, file.stat().st_size, opened))
            except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
                continue  # no image, or one that 'penstock pack' leaves out, too
        return found

    def root(self, items: Sequence[Item], work: pathlib.Path) -> pathlib.Path:
        """A directory that has the files of these items."""
        return self.path


class Pack:
    """The images of the first image field of a pack."""

    def __init__(self, path: str) -> None:
        import penstock

        self.pack = penstock.open(path)
        fields = [f.name for f in self.pack.fields if f.type == "image" and not f.mask]
        if not fields:
            raise LabError(f"'{path}': expected a pack with an image field, found none")
        self.field = fields[0]

    def items(self) -> list[Item]:
        import io

        from PIL import Image

        found = []
        for i in range(len(self.pack)):
            info = self.pack.image(i, self.field)
            if info.codec == "none":
                continue
            data = self.pack.extract(i, self.field)
            with Image.open(io.BytesIO(data)) as opened:
                found.append(_measured(str(i), len(data), opened))
        return found

    def root(self, items: Sequence[Item], work: pathlib.Path) -> pathlib.Path:
        root = work / "files"
        root.mkdir(parents=True, exist_ok=True)
        for item in items:
            (root / item.key).write_bytes(self.pack.extract(int(item.key), self.field))
        return root


def open_source(path: str) -> Folder | Pack:
    if inputs.is_pack(path):
        return Pack(path)
    if not pathlib.Path(path).is_dir():
        raise LabError(f"cannot read '{path}': expected a folder of images or a pack")
    return Folder(pathlib.Path(path))


def sample(items: Sequence[Item], n: int, seed: int) -> list[Item]:
    """n of the items: one of each n-th part of them in the order of their sizes. So small and large
    images have the same share in it as in all."""
    if not 0 < n < len(items):
        return list(items)
    import random

    ordered = sorted(items, key=lambda item: (item.bytes, item.key))
    rng, size = random.Random(seed), len(ordered)
    return [ordered[rng.randrange(i * size // n, (i + 1) * size // n)] for i in range(n)]
