# SPDX-License-Identifier: Apache-2.0
"""The page cache before each turn: cold or warm."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from . import pages
from .shape import Check, PathLike, Place, Shape, common_folder, files_below

HOW = {
    "cold": "posix_fadvise for each file; mincore",
    "cold=machine": "drop_caches for the entire machine; mincore",
    "warm": "all files read once; mincore",
}


class _CachePlace(Place):
    def __init__(self, paths: Sequence[PathLike], state: str) -> None:
        super().__init__(common_folder(paths))
        self.files, self.state = files_below(paths), state

    def refresh(self) -> None:
        if self.state == "warm":
            pages.load(self.files)
            return
        if self.state == "cold=machine":
            pages.evict_machine()
        pages.evict(self.files)


@dataclasses.dataclass(frozen=True)
class Cache(Shape):
    """state is "cold", "warm", or "cold=machine", which evicts the files of all other programs."""

    state: str

    @property
    def text(self) -> str:  # type: ignore[override]
        return self.state

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[Place]:
        place = _CachePlace(paths, self.state)
        place.refresh()
        if measure:
            asked = 100.0 if self.state == "warm" else 0.0
            found = pages.resident_percent(place.files)
            what = "files in the page cache"
            place.checks.append(Check(self.text, what, asked, found, "%", HOW[self.state]))
        yield place
