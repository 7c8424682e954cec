# SPDX-License-Identifier: Apache-2.0
"""The question of `penstock-lab load`: loaders x formats x sides x storage x threads."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import re
from typing import Any

from ..errors import Absent, LabError
from ..experiment import inputs, parameters
from ..experiment.parameters import option
from ..experiment.question import WARM_UP, Arm, Cell, Question
from . import figures, scenario
from .environments import home
from .observe import Watch, limited_by
from .sets import Set
from .workers import MemoryWatch, Worker, python_for

TRANSFORMS = ("train", "validation", "full", "box")
FORMAT = re.compile(r"asis|progressive|raw|jpeg(\d{1,3})")
STORAGE = ("warm", "cold")


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    """Of `penstock-lab load`."""

    sources: tuple[str, ...] = option((), "folders of images, or packs", positional=True)
    loaders: tuple[str, ...] = option(("penstock", "dataloader-pil", "synthetic"),
                                      "loaders to compare; see 'penstock-lab loaders'")
    formats: tuple[str, ...] = option(("asis",), "asis: the files as they are; jpegQ: encoded at "
                                      "quality Q, such as jpeg90; raw: pixels; progressive",
                                      short="f")
    sides: tuple[int, ...] = option((0,), "longest side in pixels; 0: not resized", short="s")
    storage: tuple[str, ...] = option(("warm",), "warm or cold: whether the page cache has the "
                                      "data when a turn begins")
    threads: tuple[int, ...] = option((2,), "threads or worker processes of a loader", short="t")
    transform: str = option("train", "train: RandomResizedCrop and flip; validation: Resize and "
                            "CenterCrop; full, box: decode in memory, for decoders",
                            choices=TRANSFORMS)
    size: int = option(224, "side of the images in a batch")
    short: int = option(256, "shorter side before CenterCrop")
    batch: int = option(64, "images of a batch", short="b")
    consumer: float = option(0.0, "milliseconds that a simulated training step takes for each "
                             "batch; 0: the loader alone", short="c")
    seconds: float = option(2.0, "shortest time of a turn, which is made of complete epochs")
    count: int = option(0, "use only so many images; 0: all", short="n")
    base: str = option("", "the loader that the others are compared with; the first one if empty")
    aims: tuple[str, ...] = option((), "ratios to reach, such as 'penstock/dataloader-pil>=4'")
    title: str = option("", "title of the tables")
    work: str = option("", "folder of what is made of the images; empty: the folder of "
                       "'penstock-lab setup'")


def base_of(chosen: Parameters) -> str:
    return chosen.base if chosen.base in chosen.loaders else chosen.loaders[0]


def check(chosen: Parameters) -> None:
    """Raises a LabError for parameters that cannot be measured."""
    if not chosen.sources:
        raise LabError("load: expected a folder of images or a pack, found none")
    for name in chosen.loaders:
        scenario.check_loader(name)
    for name in chosen.formats:
        found = FORMAT.fullmatch(name)
        if not found or not 1 <= int(found.group(1) or 1) <= 100:
            raise LabError(f"formats: expected asis, progressive, raw or jpeg1 to jpeg100, found "
                           f"'{name}'")
    for name in chosen.storage:
        if name not in STORAGE:
            raise LabError(f"storage: expected one of {', '.join(STORAGE)}, found '{name}'")
    for field in ("threads", "batch", "size", "short"):
        values = getattr(chosen, field)
        for value in values if isinstance(values, tuple) else (values,):
            if value < 1:
                raise LabError(f"{field}: expected at least 1, found {value}")
    if chosen.consumer < 0 or chosen.seconds < 0 or min(chosen.sides) < 0 or chosen.count < 0:
        raise LabError("consumer, seconds, sides and count: expected no negative number")
    if any(map(inputs.is_pack, chosen.sources)) and set(chosen.formats) != {"asis"}:
        raise LabError("formats: expected asis, because a pack is read as it is")
    for aim in chosen.aims:
        scenario.parse_aim(aim)


def check_of(transform: str, stored: str) -> str:
    """Which pixels are compared. Crops are those that a seed draws for an image as it is."""
    if transform == "full":
        return "corner"
    return "crops" if transform != "validation" and stored in ("asis", "progressive") \
        else "validation"


def stored_as(name: str) -> tuple[str, int]:
    """(how files are stored, quality) of a format."""
    return ("encoded", int(name[4:])) if name.startswith("jpeg") else (name, 90)


class LoaderArm(Arm):
    """One loader's worker process."""

    def __init__(self, cell: Cell, chosen: Parameters, images: Set, folder: pathlib.Path) -> None:
        self.cell, self.chosen, self.images = cell, chosen, images
        self.spec = scenario.loaders()[cell["loader"]]
        self.stored, quality = stored_as(cell["format"])
        if self.stored == "raw" and not self.spec["raw"]:
            raise Absent("reads encoded images alone")
        folder.mkdir(parents=True, exist_ok=True)
        self.task = {**images.task(self.stored, cell["side"], quality),
                     **{key: getattr(chosen, key) for key in ("transform", "size", "short",
                                                             "batch")},
                     "threads": cell["threads"], "options": self.spec["options"],
                     "check": check_of(chosen.transform, self.stored),
                     "cases": images.cases(chosen.size, chosen.short)}
        self.worker = Worker(cell["loader"], self.spec, python_for(self.spec),
                             folder / f"{cell['loader']}.log")
        self.passes = 1

    def prepared(self) -> dict[str, Any]:
        try:
            ready = self.worker.prepare(self.task)
            self.files = ready.pop("files")
            reference = self.images.folder / f"{self.task['check']}.npy"
            return {**ready, "title": self.spec["title"], "check": self.worker.check(reference)}
        except BaseException:
            self.worker.stop()
            raise

    def _cool(self) -> None:
        """Out of the page cache, if the storage is cold."""
        for file in self.files if self.cell["storage"] == "cold" else ():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)

    def _first(self) -> dict[str, Any]:
        """The first epoch; a second one tells how many are one turn."""
        self._cool()
        with MemoryWatch(self.worker.process.pid) as memory:
            first = self.worker.turn(passes=1)
            again = self.worker.turn(passes=1)
        seconds = again["seconds"] + self.chosen.consumer / 1000 * again["batches"]
        self.passes = figures.passes_for(seconds, self.chosen.seconds)
        if self.cell["storage"] == "cold":
            self.passes = 1  # what a second epoch reads would be in the page cache
        return {**first, "memory_mb": round(memory.peak / 1e6)}

    def turn(self, number: int) -> dict[str, Any]:
        if number == WARM_UP:
            return self._first()
        self._cool()
        with Watch(self.worker.process.pid) as watch:
            found = self.worker.turn(passes=self.passes, consumer_ms=self.chosen.consumer)
        found["read_mb"] = round(watch.read / 1e6, 3)
        if watch.joules is not None:
            found["joules"] = round(watch.joules, 3)
        if "bottleneck" not in found:
            threads = self.cell["threads"]
            found["bottleneck"] = limited_by(found, threads, watch.queued,
                                             watch.disk_share)
            found["bottleneck_by"] = "/proc"
        return found

    def close(self) -> None:
        self.worker.stop()


class Load(Question):
    """Cells of one source, format, side, storage and number of threads are compared."""

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen, self.folder = chosen, folder
        self.work = pathlib.Path(chosen.work) if chosen.work else home()
        self.images: dict[str, Set] = {}

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(source) for source in self.chosen.sources]

    def groups(self) -> list[list[Cell]]:
        chosen = self.chosen
        groups: list[list[Cell]] = []
        for source, form, side, storage, threads in itertools.product(
                chosen.sources, chosen.formats, chosen.sides, chosen.storage, chosen.threads):
            if side and form in ("asis", "progressive"):
                continue  # these keep the files as they are
            shared: dict[str, Any] = {"format": form, "side": side, "storage": storage,
                                      "threads": threads}
            if len(chosen.sources) > 1:
                shared["source"] = source
            groups.append([{"loader": name, **shared} for name in chosen.loaders])
        if not groups:
            raise LabError("sides: asis and progressive keep the files as they are; add a format "
                           "such as jpeg90, or the side 0")
        return groups

    def open(self, cell: Cell) -> Arm:
        source = cell.get("source", self.chosen.sources[0])
        if source not in self.images:
            self.images[source] = Set.of_source(source, self.work, self.chosen.count)
        return LoaderArm(cell, self.chosen, self.images[source], self.folder / "logs")
