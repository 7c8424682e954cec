# SPDX-License-Identifier: Apache-2.0
"""Clips as files: OUT/frames/<id>/00001.jpg ... and OUT/list.csv, `id;label`."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

# Frames of a clip, their sides, and the quality of a JPEG file.
FRAMES, WIDTH, HEIGHT, QUALITY = 37, 176, 100, 85


def write_frames(pictures: Iterable[Any], folder: pathlib.Path) -> None:
    """The pictures of a clip, which are those of Pillow."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, picture in enumerate(pictures, 1):
        picture.save(folder / f"{i:05}.jpg", quality=QUALITY, subsampling="4:2:0")


def write_list(folder: pathlib.Path, rows: Sequence[tuple[str, str]]) -> None:
    """The (id, label) of all clips; it is written last, when the set is complete."""
    part = folder / "list.part"
    part.write_text("".join(f"{key};{label}\n" for key, label in rows), encoding="utf-8")
    part.rename(folder / "list.csv")
