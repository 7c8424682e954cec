# SPDX-License-Identifier: Apache-2.0
"""The question of `penstock-lab clips`: tasks x storage x loaders."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from typing import Any

from .. import shapes
from ..errors import Absent, LabError
from ..experiment import inputs, parameters
from ..experiment.parameters import option
from ..experiment.question import Arm, Cell, Question
from ..home import home
from ..loaders import scenario
from . import sets, turns

TASKS = ("size", "fetch", "train")


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    """Of `penstock-lab clips`."""

    tasks: tuple[str, ...] = option(("size", "fetch"), f"what is measured: {', '.join(TASKS)}",
                                    positional=True, path=False)
    videos: str = option("", "folder of videos that clips are cut from; empty: ffmpeg's test "
                         "pictures", path=True)
    loaders: tuple[str, ...] = option(tuple(turns.loaders()), "loaders to compare")
    storage: tuple[str, ...] = option(("warm",), "warm, cold, or a simulated storage such as "
                                      "seeks=6.8ms or disk=20MB/s")
    clips: int = option(2000, "clips of the set", short="n")
    fetched: int = option(500, "clips that fetch reads", short="f")
    epoch: int = option(0, "clips of an epoch of train; 0: all", short="e")
    batch: int = option(10, "clips of a batch", short="b")
    workers: int = option(5, "worker processes of a DataLoader", short="w")
    threads: int = option(2, "threads of penstock", short="t")
    consumer: float = option(200.0, "milliseconds that a simulated training step of train takes "
                             "for each batch", short="c")
    aims: tuple[str, ...] = option((), "ratios of fetch to reach, such as 'penstock/jpeg>=3.5'")
    work: str = option("", "folder of the set; empty: the folder of 'penstock-lab setup'",
                       path=True)

    def count(self, task: str) -> int:
        """Clips that a task needs."""
        return self.fetched if task == "fetch" else (task == "train" and self.epoch) or self.clips


def check(chosen: Parameters) -> None:
    """Raises a LabError for parameters that cannot be measured."""
    known = turns.loaders()
    for task in chosen.tasks:
        if task not in TASKS:
            raise LabError(f"unknown task '{task}'; expected one of {', '.join(TASKS)}")
    for name in chosen.loaders:
        scenario.check_loader(name, known)
    for aim in chosen.aims:
        scenario.parse_aim(aim, known)
    for name in chosen.storage:
        if isinstance(shapes.parse(name), shapes.Store):
            raise LabError(f"storage: expected one of local files, found '{name}'")
    for field in ("clips", "fetched", "batch", "workers", "threads"):
        if getattr(chosen, field) < 1:
            raise LabError(f"{field}: expected at least 1, found {getattr(chosen, field)}")
    if not 0 <= chosen.consumer or not 0 <= chosen.epoch <= chosen.clips:
        raise LabError("consumer and epoch: expected no negative number, and an epoch of at most "
                       f"{chosen.clips} clips")
    if not chosen.batch <= chosen.count("fetch") <= chosen.clips or \
            chosen.count("train") < chosen.batch:
        raise LabError(f"expected at least one batch of {chosen.batch} clips, and at most the "
                       f"{chosen.clips} of the set")


class SizeArm(Arm):
    """What a loader reads, and how much room it takes."""

    def __init__(self, spec: dict[str, Any], made: sets.Set) -> None:
        self.spec, self.set = spec, made

    def prepared(self) -> dict[str, Any]:
        return {"title": self.spec["title"]}

    def turn(self, number: int) -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        found = sets.room(self.set.folder, self.spec["reads"])
        return {"seconds": time.perf_counter() - began, "samples": self.set.clips,
                "cpu": time.process_time() - cpu, **found}


class ClipArm(Arm):
    """One loader on one storage; each turn is a process of its own."""

    def __init__(self, cell: Cell, chosen: Parameters, made: sets.Set,
                 folder: pathlib.Path) -> None:
        self.cell, self.set = cell, made
        self.spec = turns.loaders()[cell["loader"]]
        self.train = cell["task"] == "train"
        self.consumer = chosen.consumer if self.train else 0.0
        self.task = turns.task(chosen.count(cell["task"]), chosen.batch, chosen.workers,
                               chosen.threads, shuffle=self.train, step=self.consumer / 1000)
        self.log = folder / f"{cell['loader']}.log"
        self.storage = contextlib.ExitStack()
        self.place: shapes.Place | None = None

    def _reference(self) -> pathlib.Path | None:
        """None if there is no PyTorch with Pillow to decode the files."""
        try:
            return turns.save_reference(self.task, self.set.folder,
                                        self.log.with_name("reference.log"))
        except Absent:
            return None

    def prepared(self) -> dict[str, Any]:
        found = turns.check(self.cell["loader"], self.task, self.set.folder, self.log,
                            self._reference())
        paths = self.set.paths(self.spec["reads"], self.task["clips"])
        shape = shapes.parse(self.cell["storage"])
        self.place = self.storage.enter_context(shape.apply(paths))
        return {"title": self.spec["title"], **found}

    def shapes(self) -> list[dict[str, Any]]:
        return [check.record() for check in self.place.checks] if self.place else []

    def turn(self, number: int) -> dict[str, Any]:
        assert self.place is not None
        found = turns.turn(self.cell["loader"], self.task, self.place, self.log)
        return {**found, "consumer_ms": self.consumer, "idle": found["data"] / found["seconds"]}

    def close(self) -> None:
        self.storage.close()


class Clips(Question):
    """Loaders are compared for each task and storage."""

    warm_up = False  # a turn includes the start of the loader

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen, self.folder = chosen, folder
        work = pathlib.Path(chosen.work) if chosen.work else home()
        self.set = sets.Set(chosen.videos, work, chosen.clips, chosen.fetched)

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.chosen.videos)] if self.chosen.videos else []

    def groups(self) -> list[list[Cell]]:
        return [[{"task": task, "loader": name, "storage": storage}
                 for name in self.chosen.loaders]
                for task in self.chosen.tasks
                for storage in (self.chosen.storage if task != "size" else ("local",))]

    def open(self, cell: Cell) -> Arm:
        spec = turns.loaders()[cell["loader"]]
        self.set.need(spec["reads"], spec["complete"], self.chosen.count(cell["task"]))
        if cell["task"] == "size":
            return SizeArm(spec, self.set)
        return ClipArm(cell, self.chosen, self.set, self.folder / "logs")
