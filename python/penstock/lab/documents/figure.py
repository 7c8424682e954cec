# SPDX-License-Identifier: Apache-2.0
"""A published figure and ours."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Callable


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class Options:
    """What the documents are measured with.

    photos   a folder of images
    work     a folder on a local disk for packs; what is in it is used again
    rounds   how often each comparison is repeated
    fashion  a report of `penstock-lab fashion`; empty: the newest one beside this run
    """

    photos: str
    work: str
    rounds: int = 2
    say: Callable[[str], None] = _print
    fashion: str = ""

    def folder(self, name: str) -> pathlib.Path:
        folder = pathlib.Path(self.work).resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclasses.dataclass(frozen=True)
class Figure:
    """One row of a page.

    published, ours  with their units; ours is "absent" if this machine cannot measure it
    ratio            ours / published, where both are ratios or shares; else None
    simulated        whether the storage or the training step was simulated
    note             conditions
    command          repeats the measurement
    seconds          how long the measurement took
    why              why ours is worse than published; empty: it is not
    lower            whether a lower ratio is better, as of sizes and of waits
    """

    what: str
    published: str
    ours: str
    ratio: float | None
    simulated: bool
    note: str
    command: str
    seconds: float = 0.0
    why: str = ""
    lower: bool = False


class Stopwatch:
    """Seconds since the last figure."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        seconds, self.began = now - self.began, now
        return round(seconds, 1)


# By loader, [start, seconds] of the first waits of an epoch with simulated steps.
Waits = dict[str, list[list[float]]]


def save_waits(folder: pathlib.Path, waits: Waits) -> None:
    (folder / "waits.json").write_text(json.dumps(waits), encoding="utf-8")


def read_waits(folder: pathlib.Path) -> Waits:
    """What save_waits() has written there; empty if nothing was measured."""
    file, found = folder / "waits.json", {}
    if file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
    return dict(found)


def times(value: float) -> str:
    return f"{value:.1f} times"


def absent(what: str, published: str, reason: object, command: str) -> Figure:
    return Figure(what, published, "absent", None, True, str(reason), command)
