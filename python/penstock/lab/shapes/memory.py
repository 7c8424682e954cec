# SPDX-License-Identifier: Apache-2.0
"""Less memory: the memory controller limits the loader's processes and their page cache."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence

from ..errors import Absent
from . import cgroup, pages, reader, undo
from .disk import device_of, probe_folder
from .shape import Check, PathLike, Place, Shape, common_folder, files_below

LEAST = 32 << 20
HOW = "cgroup v1 memory.limit_in_bytes; usage after a larger file was read"


class MemoryPlace(Place):
    def __init__(self, paths: Sequence[PathLike], group: cgroup.Group) -> None:
        super().__init__(common_folder(paths))
        self.files, self.group = files_below(paths), group

    def join(self, pid: int) -> None:
        self.group.join(pid)

    def counts(self) -> dict[str, int]:
        """Bytes now: `rss` of the processes, `cache` of the pages of files."""
        pairs = (line.split() for line in self.group.read("memory.stat").splitlines())
        return {name: int(value) for name, value in pairs if name in ("rss", "cache")}


@dataclasses.dataclass(frozen=True)
class Memory(Shape):
    """What processes allocate from now on, and the pages of the files that they read, get so many
    bytes together. Pages are kept between turns: how many of them fit is what matters."""

    limit: int

    @property
    def text(self) -> str:  # type: ignore[override]
        return f"memory={self.limit / 1e6:g}MB"

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[Place]:
        if self.limit < LEAST:
            raise Absent(f"{self.text}: a process needs {LEAST / 1e6:.0f} MB at least")
        with undo.on_sigterm(), cgroup.group("memory") as group:
            group.write("memory.limit_in_bytes", str(self.limit))
            place = MemoryPlace(paths, group)
            if measure:
                place.checks.append(self.check(place))
            pages.evict(place.files)  # pages that others have read are charged to others
            yield place

    def check(self, place: MemoryPlace) -> Check:
        with probe_folder(place.folder, device_of(place.folder)) as folder:
            file = folder / "probe"
            with open(file, "wb") as out:
                out.truncate(self.limit + LEAST)  # holes fill the page cache too
            with reader.read_rate(file, place.join, 30 + self.limit / 100e6):
                used = int(place.group.read("memory.usage_in_bytes"))
            os.truncate(file, 0)
        asked, measured = self.limit / 1e6, used / 1e6
        return Check(self.text, "memory with page cache", asked, measured, "MB", HOW)
