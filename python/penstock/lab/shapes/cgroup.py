# SPDX-License-Identifier: Apache-2.0
"""Control groups, version 1: limits for the processes of a loader."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

from ..errors import Absent, LabError
from . import undo

ROOT = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A group of one controller, without processes at first."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="ascii")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="ascii")

    def join(self, pid: int) -> None:
        """Move a process with all its threads here; children that it starts later follow."""
        try:
            self.write("cgroup.procs", str(pid))
        except OSError as error:
            raise LabError(f"cannot put process {pid} into {self.folder}: {error}") from None

    def remove(self) -> None:
        """Processes that are still in it return to the parent group."""
        if not undo.until(self._removed):
            raise LabError(f"cannot remove {self.folder}: processes remain. Remove it with rmdir.")

    def _removed(self) -> bool:
        with contextlib.suppress(OSError):
            for pid in self.read("cgroup.procs").split():
                with contextlib.suppress(OSError):
                    (self.folder.parent / "cgroup.procs").write_text(pid, encoding="ascii")
        with contextlib.suppress(OSError):
            self.folder.rmdir()
        return not self.folder.exists()


def _controller(name: str) -> pathlib.Path:
    folder = ROOT / name
    if not (folder / "cgroup.procs").exists():
        raise Absent(
            f"no cgroup v1 controller '{name}' in {ROOT}. Start Linux with "
            "systemd.unified_cgroup_hierarchy=0, or mount it: "
            f"mount -t cgroup -o {name} {name} {folder}"
        )
    return folder


def remove_leftovers(controller: str) -> None:
    for folder in (ROOT / controller).glob(undo.PREFIX + "*"):
        if undo.is_leftover(folder.name):
            Group(folder).remove()


@contextlib.contextmanager
def group(controller: str) -> Iterator[Group]:
    """A new group, removed afterwards."""
    folder = _controller(controller)
    if os.geteuid() != 0:
        raise Absent(f"cgroup limits ({controller}) need root: run penstock-lab with sudo")
    remove_leftovers(controller)
    made = Group(folder / undo.new_name())
    try:
        made.folder.mkdir()
    except OSError as error:
        raise Absent(f"cannot create a cgroup in {folder}: {error}") from None
    try:
        yield made
    finally:
        made.remove()
