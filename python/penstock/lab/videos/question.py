# SPDX-License-Identifier: Apache-2.0
"""The question of `penstock-lab videos`: lengths x GOPs x storage x loaders, or x forms."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from typing import Any

from .. import shapes
from ..errors import Absent, LabError
from ..experiment import inputs, parameters
from ..experiment.parameters import option
from ..experiment.question import Arm, Cell, Question
from ..home import home
from ..loaders import scenario
from . import reference, sets, sizes, turns

TASKS = ("speed", "size")
ARM = r"([\w-]+)(?:@([\w=.]+))?"
AIM = re.compile(rf"{ARM}/{ARM}>=(\d+(?:\.\d+)?)(?::(\d+))?")
# Mean difference of the pixels from the reference, of 255: colors are converted in other ways, and
# frames that are stored as JPEG have lost something. Another frame is farther away.
WRONG = {"kept.pen": 1.0, "videos": 2.0, "frames.pen": 6.0}


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    """Of `penstock-lab videos`."""

    videos: str = option("", "folder of videos that are encoded anew; empty: ffmpeg's test "
                         "pictures", positional=True, path=True)
    tasks: tuple[str, ...] = option(("speed",), f"what is measured: {', '.join(TASKS)}")
    gop: tuple[int, ...] = option((12, 48, 250), "frames from one key frame to the next")
    lengths: tuple[str, ...] = option(sets.LENGTHS, "short: the videos; long: one video of all",
                                      short="l")
    loaders: tuple[str, ...] = option(tuple(turns.loaders()), "loaders to compare")
    storage: tuple[str, ...] = option(("warm",), "warm, or a simulated store such as store=110ms")
    clips: int = option(160, "clips of a turn", short="n")
    batch: int = option(8, "clips of a batch", short="b")
    threads: int = option(2, "threads that decode", short="t")
    waiting: int = option(32, "threads of other loaders that read from a store", short="w")
    frames: int = option(16, "frames of a clip", short="f")
    stride: int = option(2, "distance of its frames", short="s")
    width: int = option(340, "of the videos")
    height: int = option(256, "of the videos")
    crop: int = option(224, "side of the center box of each frame", short="c")
    size: int = option(112, "side to which the box is resized")
    seconds: int = option(600, "length of the long video")
    aims: tuple[str, ...] = option((), "ratios to reach, such as 'penstock/torchcodec>=2.5:12' for "
                                   "GOP 12, or 'penstock@store=110ms/penstock>=0.95'")
    work: str = option("", "folder of the videos; empty: the folder of 'penstock-lab setup'",
                       path=True)

    def task(self) -> dict[str, Any]:
        """What every loader gets."""
        names = ("clips", "batch", "threads", "frames", "stride", "crop", "size")
        return {**{name: getattr(self, name) for name in names}, "center": False}


@dataclasses.dataclass(frozen=True)
class Aim:
    """A ratio of two arms, of one GOP or of all (0)."""

    of: str
    against: str
    ratio: float
    gop: int


def arm_name(loader: str, storage: str) -> str:
    """LOADER, or LOADER@STORAGE."""
    return loader if storage == "warm" else f"{loader}@{storage}"


def parse_aim(text: str) -> Aim:
    found = AIM.fullmatch(text)
    if not found:
        raise LabError(f"aims: expected LOADER/LOADER>=RATIO or LOADER@STORAGE/LOADER>=RATIO:GOP, "
                       f"found '{text}'")
    of, at, against, other, ratio, gop = found.groups()
    for name in (of, against):
        scenario.check_loader(name, turns.loaders())
    return Aim(arm_name(of, at or "warm"), arm_name(against, other or "warm"), float(ratio),
               int(gop or 0))


def _check_numbers(chosen: Parameters) -> None:
    for field in ("clips", "batch", "threads", "waiting", "frames", "stride", "crop", "size",
                  "seconds"):
        if getattr(chosen, field) < 1:
            raise LabError(f"{field}: expected at least 1, found {getattr(chosen, field)}")
    for gop in chosen.gop:
        if gop < 1:
            raise LabError(f"gop: expected at least 1, found {gop}")
    for side in (chosen.width, chosen.height):
        if side % 2 or side < chosen.crop:
            raise LabError(f"width and height: expected even numbers of at least {chosen.crop} "
                           f"(crop), found {side}")
    if chosen.clips % chosen.batch:
        raise LabError(f"clips: expected a multiple of {chosen.batch} (batch), found "
                       f"{chosen.clips}")


def check(chosen: Parameters) -> None:
    """Raises a LabError for parameters that cannot be measured."""
    for task in chosen.tasks:
        if task not in TASKS:
            raise LabError(f"tasks: expected {' or '.join(TASKS)}, found '{task}'")
    for name in chosen.loaders:
        scenario.check_loader(name, turns.loaders())
    for length in chosen.lengths:
        if length not in sets.LENGTHS:
            raise LabError(f"lengths: expected {' or '.join(sets.LENGTHS)}, found '{length}'")
    for name in chosen.storage:
        if name != "warm" and not isinstance(shapes.parse(name), shapes.Store):
            raise LabError(f"storage: expected warm or a store such as store=110ms, found '{name}'")
    for aim in chosen.aims:
        parse_aim(aim)
    _check_numbers(chosen)


class VideoArm(Arm):
    """One loader on one storage; a process for all turns."""

    def __init__(self, cell: Cell, chosen: Parameters, of: sets.Set, folder: pathlib.Path) -> None:
        self.cell, self.chosen, self.set = cell, chosen, of
        self.spec = turns.loaders()[cell["loader"]]
        self.stack, self.folder = contextlib.ExitStack(), folder
        self.place: shapes.Place | None = None
        self.reader: turns.Reader | None = None

    def _task(self, place: shapes.Place) -> dict[str, Any]:
        task = {**self.chosen.task(), "names": self.set.names(),
                "address": turns.address(place, self.set, self.spec["reads"])}
        if self.cell["storage"] != "warm" and self.spec["environment"]:
            task["threads"] = self.chosen.waiting
        return task

    def prepared(self) -> dict[str, Any]:
        reads = self.spec["reads"]
        self.set.need(reads)
        shape = shapes.parse(self.cell["storage"])
        self.place = self.stack.enter_context(shape.apply(self.set.paths(reads)))
        setting = f"{self.cell['length']}-{self.cell['gop']}"
        pixels = reference.save(self.chosen.task(), self.set, self.chosen.width,
                                self.chosen.height, self.folder / f"reference-{setting}.npy")
        log = self.folder / f"{setting}-{arm_name(self.cell['loader'], self.cell['storage'])}.log"
        self.reader = turns.Reader(self.cell["loader"], self._task(self.place), self.place, log)
        self.stack.callback(self.reader.close)
        found = self.reader.prepare(pixels)
        if found["check"]["mean"] > WRONG[reads]:
            raise Absent("wrong frames: their pixels differ by "
                         f"{found['check']['mean']:.2f} of 255 on average, expected at most "
                         f"{WRONG[reads]}")
        where = "" if self.cell["storage"] == "warm" else f", simulated {self.cell['storage']}"
        return {"title": self.spec["title"] + where, "disk": self.set.bytes(reads), **found}

    def shapes(self) -> list[dict[str, Any]]:
        return [found.record() for found in self.place.checks] if self.place else []

    def turn(self, number: int) -> dict[str, Any]:
        assert self.reader is not None
        return self.reader.turn(number)

    def close(self) -> None:
        self.stack.close()


class Videos(Question):
    """Loaders, or the forms that videos are stored in, are compared for each length and GOP."""

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen, self.folder = chosen, folder
        work = pathlib.Path(chosen.work) if chosen.work else home()
        self.sets = sets.Sets(chosen.videos, work, chosen.width, chosen.height, chosen.seconds)

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.chosen.videos)] if self.chosen.videos else []

    def groups(self) -> list[list[Cell]]:
        settings = [(length, gop) for length in self.chosen.lengths for gop in self.chosen.gop]
        return [group for task in self.chosen.tasks
                for group in (sizes.groups(settings) if task == "size"
                              else self._speed_groups(settings))]

    def _speed_groups(self, settings: list[tuple[str, int]]) -> list[list[Cell]]:
        return [[{"task": "speed", "length": length, "gop": gop, "loader": loader,
                  "storage": storage}
                 for storage in self.chosen.storage for loader in self.chosen.loaders]
                for length, gop in settings]

    def open(self, cell: Cell) -> Arm:
        if cell["task"] == "size":
            return sizes.SizeArm(cell, self.sets)
        if cell["storage"] != "warm" and not turns.loaders()[cell["loader"]]["remote"]:
            raise Absent("reads local files only")
        made = self.sets.make(cell["length"], cell["gop"])
        return VideoArm(cell, self.chosen, made, self.folder / "logs")
