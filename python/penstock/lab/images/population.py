# SPDX-License-Identifier: Apache-2.0
"""All images of a folder or a pack: what their headers tell, and how detailed they are."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ..errors import LabError
from ..experiment import inputs

DETAIL_QUALITIES = (20, 75)


class Item(NamedTuple):
    """An image.

    coarseness  the mean of its quantization tables; 0 if it has none
    channels    1 for a gray image, otherwise 3
    metadata    bytes of Exif, color profile and the like
    detail      bytes per pixel of a copy of half the size, as a JPEG of each of two qualities;
                empty if it was not measured"""

    key: str
    bytes: int
    width: int
    height: int
    coarseness: float
    channels: int = 3
    metadata: int = 0
    detail: tuple[float, ...] = ()

    @property
    def pixels(self) -> int:
        return max(1, self.width * self.height)


def _measured(key: str, size: int, opened: Any) -> Item:
    tables = getattr(opened, "quantization", None) or {}
    values = [value for table in tables.values() for value in table]
    coarse = sum(values) / len(values) if values else 0.0
    channels = 1 if opened.mode in ("1", "L", "I", "I;16") else 3
    metadata = sum(len(data) for _, data in getattr(opened, "applist", ()))
    return Item(key, size, opened.width, opened.height, coarse, channels, metadata)


def _detail(file: Any) -> tuple[float, ...]:
    from PIL import Image

    with Image.open(file) as opened:
        half = max(1, opened.width // 2), max(1, opened.height // 2)
        opened.draft(None, half)  # the decoder of JPEG shrinks while it decodes
        image = opened.convert("RGB")
    if image.width > half[0] + 1:
        image = image.reduce(2)
    found = []
    for quality in DETAIL_QUALITIES:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        found.append(out.tell() / (image.width * image.height))
    return tuple(found)


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

    def file(self, item: Item) -> pathlib.Path:
        return self.path / item.key

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

    def file(self, item: Item) -> io.BytesIO:
        return io.BytesIO(self.pack.extract(int(item.key), self.field))

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


def with_detail(source: Folder | Pack, items: Sequence[Item]) -> list[Item]:
    """The same items with their detail, without those that cannot be decoded."""
    def measured(item: Item) -> Item | None:
        try:
            return item._replace(detail=_detail(source.file(item)))
        except (OSError, ValueError, SyntaxError):  # 'penstock pack' leaves it out, too
            return None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [item for item in pool.map(measured, items) if item is not None]
