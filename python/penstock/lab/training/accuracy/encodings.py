# SPDX-License-Identifier: Apache-2.0
"""Packs of one dataset in several encodings."""

from __future__ import annotations

import pathlib
import re
import time
from typing import Any, Protocol

from ...errors import LabError

_NAME = re.compile(r"(?:(raw)|(jpeg|webp)(\d{1,3}))(?:@(\d{1,5}))?")


class Source(Protocol):
    """A dataset with the splits "train" and "test"."""

    def write(self, split: str, name: str, path: pathlib.Path) -> None:
        """Write the pack of a split with an encoding."""


def options(name: str) -> dict[str, Any]:
    """What Writer needs for 'raw', 'jpeg90', 'webp50', 'jpeg90@256': at most 256 pixels a side."""
    m = _NAME.fullmatch(name)
    if not m or (m[3] and not 1 <= int(m[3]) <= 100):
        raise LabError(f"encodings: expected raw, jpegQ or webpQ with a quality of 1 to 100, as in "
                       f"jpeg90 or webp80@256, found '{name}'")
    found: dict[str, Any] = {"max_side": int(m[4] or 0)}
    if m[1]:
        return {**found, "mode": "raw"}
    # An index of a small JPEG takes more space than it saves time.
    return {**found, "mode": "encode", "codec": m[2], "quality": int(m[3]), "index": False}


def size(pack: pathlib.Path) -> int:
    """Bytes of all files of a pack."""
    return sum(file.stat().st_size for file in pack.rglob("*") if file.is_file())


def make(source: Source, split: str, name: str, folder: pathlib.Path) -> tuple[str, float]:
    """The path of the pack of a split, and the seconds it took to write; 0 if it exists."""
    path, began = folder / f"{split}-{name}.pen", time.perf_counter()
    if (path / "manifest").exists():
        return str(path), 0.0
    folder.mkdir(parents=True, exist_ok=True)
    source.write(split, name, path)
    return str(path), time.perf_counter() - began
