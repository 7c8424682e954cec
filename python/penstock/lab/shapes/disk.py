# SPDX-License-Identifier: Apache-2.0
"""A disk with less bandwidth: the blkio controller limits what the loader's processes read."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Iterator, Sequence

from ..errors import Absent
from . import cgroup, pages, reader, undo
from .shape import Check, PathLike, Place, Shape, common_folder, files_below

PROBE_SECONDS = 2.0
PROBE_BYTES = (8 << 20, 512 << 20)  # least and most
HOW = "cgroup v1 blkio.throttle.read_bps_device; a file read through the page cache"


def device_of(folder: pathlib.Path) -> str:
    """MAJOR:MINOR of the entire disk that holds it: limits apply to disks, not to partitions."""
    number = os.stat(folder).st_dev
    place = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not place.exists():
        raise Absent(
            f"{folder} is not on a block device, so its bandwidth cannot be limited. "
            "Choose a folder on a local disk."
        )
    disk = place.parent if (place / "partition").exists() else place
    return (disk / "dev").read_text(encoding="ascii").strip()


class _DiskPlace(Place):
    def __init__(self, paths: Sequence[PathLike], group: cgroup.Group) -> None:
        super().__init__(common_folder(paths))
        self.files, self.group = files_below(paths), group

    def join(self, pid: int) -> None:
        self.group.join(pid)

    def refresh(self) -> None:
        pages.evict(self.files)

    def counts(self) -> dict[str, int]:
        """Bytes that the processes have read from the disk."""
        lines = self.group.read("blkio.throttle.io_service_bytes").splitlines()
        return {"disk_bytes": sum(int(line.split()[2]) for line in lines if " Read " in line)}


def write_probe(file: pathlib.Path, size: int) -> None:
    """A file with content on the disk, and no page of it in memory."""
    block = os.urandom(1 << 20)
    try:
        with open(file, "wb", buffering=0) as out:
            for _ in range(-(-size // len(block))):
                out.write(block)
    except OSError as error:
        raise Absent(f"cannot write {size / 1e6:.0f} MB to measure the disk: {error}") from None
    pages.evict([str(file)])


@dataclasses.dataclass(frozen=True)
class Disk(Shape):
    """Reads are limited to so many MB/s (10**6 bytes). Every turn starts with a cold page cache."""

    mb_per_second: float

    @property
    def text(self) -> str:  # type: ignore[override]
        return f"disk={self.mb_per_second:g}MB/s"

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[Place]:
        device = device_of(common_folder(paths))
        with undo.on_sigterm(), cgroup.group("blkio") as group:
            rate = round(self.mb_per_second * 1e6)
            group.write("blkio.throttle.read_bps_device", f"{device} {rate}")
            place = _DiskPlace(paths, group)
            if measure:
                place.checks.append(self.check(place, device))
            place.refresh()
            yield place

    def check(self, place: Place, device: str) -> Check:
        size = round(self.mb_per_second * 1e6 * PROBE_SECONDS)
        size = min(max(size, PROBE_BYTES[0]), PROBE_BYTES[1])
        expected = size / (self.mb_per_second * 1e6)
        with probe_folder(place.folder, device) as folder:
            write_probe(folder / "probe", size)
            with reader.read_rate(folder / "probe", place.join, 30 + 3 * expected) as rate:
                return Check(
                    self.text, "bandwidth", self.mb_per_second, rate / 1e6, "MB/s", HOW
                )


def _on(device: str, folder: str) -> bool:
    with contextlib.suppress(Absent):
        return os.access(folder, os.W_OK) and device_of(pathlib.Path(folder)) == device
    return False


@contextlib.contextmanager
def probe_folder(near: pathlib.Path, device: str) -> Iterator[pathlib.Path]:
    """A folder for temporary files on the same disk."""
    for where in (tempfile.gettempdir(), str(near)):
        if _on(device, where):
            undo.remove_leftover_folders(where)
            with undo.temporary_folder(where) as folder:
                yield folder
            return
    raise Absent(f"no folder to write to on the disk of {near}, so it cannot be measured")
