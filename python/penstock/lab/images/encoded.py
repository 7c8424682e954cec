# SPDX-License-Identifier: Apache-2.0
"""The images of a pack or of a folder, as files."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import penstock

from ..errors import Absent, LabError
from ..experiment.inputs import is_pack

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


def pillow() -> Any:
    """The module PIL.Image."""
    try:
        import PIL.Image
    except ImportError:
        raise Absent("images are generated with Pillow: pip install pillow") from None
    return PIL.Image


def encoded(source: str) -> Iterator[bytes]:
    """All images, in an order that is always the same."""
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


def endless(source: str) -> Iterator[bytes]:
    """The images over and over again."""
    while True:
        yield from encoded(source)
