# SPDX-License-Identifier: Apache-2.0
"""What all storage shapes have in common."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

# How far the measured value may be from the requested one.
TOLERANCE = 0.05

PathLike = str | os.PathLike[str]


def is_simulated(text: str) -> bool:
    """Whether a storage is slower or smaller than the real one; the state of the page cache alone
    simulates nothing."""
    return text.partition("=")[0] not in ("", "local", "warm", "cold")


@dataclasses.dataclass(frozen=True)
class Check:
    """One property of a storage: requested and measured."""

    shape: str  # the text that parse() reads
    what: str
    asked: float
    measured: float
    unit: str
    how: str

    @property
    def off(self) -> float:
        """The relative error; for a requested 0, the measured value as a share of 100."""
        return self.measured / self.asked - 1 if self.asked else self.measured / 100

    @property
    def within(self) -> bool:
        return abs(self.off) <= TOLERANCE + 1e-9

    def record(self) -> dict[str, Any]:
        """For a line of kind "shape" in a report."""
        fields = dataclasses.asdict(self)
        return {**fields, "off": self.off, "within": self.within,
                "simulated": is_simulated(self.shape)}

    def __str__(self) -> str:
        verdict = "within 5 %" if self.within else f"{abs(self.off):.1%} off: more than 5 %"
        return (
            f"{'simulated ' if is_simulated(self.shape) else ''}{self.shape}: {self.what} "
            f"{self.asked:g} {self.unit} requested, "
            f"{self.measured:.4g} {self.unit} measured, {verdict}"
        )


class Place:
    """Where a loader reads while a shape is applied.

    folder       the folder to read
    words        what to put in front of the command that starts a loader's process
    environment  variables for that process
    checks       what was measured before use
    """

    def __init__(self, folder: PathLike) -> None:
        self.origin = self.folder = pathlib.Path(folder)
        self.words: list[str] = []
        self.environment: dict[str, str] = {}
        self.checks: list[Check] = []

    def path(self, original: PathLike) -> pathlib.Path:
        """Where a file or folder below the original folder is found."""
        return self.folder / pathlib.Path(original).resolve().relative_to(self.origin.resolve())

    def join(self, pid: int) -> None:
        """Apply the limits to a process and to the children that it starts from now on."""

    def refresh(self) -> None:
        """Restore the state that a turn starts from, such as a cold page cache."""

    def counts(self) -> dict[str, int]:
        """What the simulated storage has counted."""
        return {}


class Shape:
    """A simulated storage; `local` changes nothing."""

    text = "local"

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[Place]:
        """Simulate it for these files and folders; Absent if the machine does not allow it.

        measure  whether to measure the shape before use
        """
        yield Place(common_folder(paths))


def common_folder(paths: Sequence[PathLike]) -> pathlib.Path:
    """The folder that holds all of these."""
    common = pathlib.Path(os.path.commonpath([os.path.realpath(path) for path in paths]))
    return common if common.is_dir() and not is_pack(common) else common.parent


def is_pack(folder: pathlib.Path) -> bool:
    return (folder / "manifest").is_file()


def files_below(paths: Sequence[PathLike]) -> list[str]:
    """All files of these files and folders."""
    found = []
    for path in paths:
        if os.path.isfile(path):
            found.append(os.fspath(path))
        for folder, _, names in os.walk(path, followlinks=True):
            found += [os.path.join(folder, name) for name in names]
    return [file for file in found if os.path.isfile(file)]
