# SPDX-License-Identifier: Apache-2.0
"""The question of `penstock-lab load`: loaders x formats x sides x storage x threads."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import tempfile
from typing import Any

from .. import shapes
from ..errors import Absent, LabError
from ..experiment import inputs, parameters
from ..experiment.parameters import option
from ..experiment.question import WARM_UP, Arm, Cell, Question
from ..home import home
from . import figures, scenario
from .observe import Watch, limited_by
from .sets import Set
from .workers import MemoryWatch, Worker, python_for

TRANSFORMS = ("train", "validation", "full", "box")
FORMAT = re.compile(r"asis|progressive|raw|jpeg(\d{1,3})")


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
    storage: tuple[str, ...] = option(("warm",), "warm, cold, or a simulated storage such as "
                                      "disk=20MB/s, seeks=7ms, memory=300MB or store=110ms")
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


def check(chosen: Parameters) -> None:
    """Raises a LabError for parameters that cannot be measured."""
    if not chosen.sources:
        raise LabError("load: expected a folder of images or a pack, found none")
    known = scenario.loaders()
    for name in chosen.loaders:
        scenario.check_loader(name, known)
    for name in chosen.formats:
        found = FORMAT.fullmatch(name)
        if not found or not 1 <= int(found.group(1) or 1) <= 100:
            raise LabError(f"formats: expected asis, progressive, raw or jpeg1 to jpeg100, found "
                           f"'{name}'")
    for name in chosen.storage:
        shapes.parse(name)
        if "+" in name and "store=" in name:
            raise LabError(f"storage: expected a store alone, found '{name}'")
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
        scenario.parse_aim(aim, known)


def check_of(transform: str, stored: str) -> str:
    """Which pixels are compared. Crops are those that a seed draws for an image as it is."""
    if transform == "full":
        return "corner"
    return "crops" if transform != "validation" and stored in ("asis", "progressive") \
        else "validation"


def check_storage(spec: dict[str, Any], shape: shapes.Shape) -> None:
    """Raises Absent for a loader that cannot read from this storage."""
    if isinstance(shape, shapes.Store):
        if "store" not in spec["reads"]:
            raise Absent("reads local files; the simulated store has the interface of S3")
    elif "files" not in spec["reads"]:
        raise Absent("reads from an object store; choose one, such as --storage store=110ms")


def stored_as(name: str) -> tuple[str, int]:
    """(how files are stored, quality) of a format."""
    return ("encoded", int(name[4:])) if name.startswith("jpeg") else (name, 90)


class LoaderArm(Arm):
    """One loader's worker process, and the storage that it reads."""

    def __init__(self, cell: Cell, chosen: Parameters, images: Set, folder: pathlib.Path) -> None:
        self.cell, self.chosen, self.images = cell, chosen, images
        self.spec = scenario.loaders()[cell["loader"]]
        self.stored, quality = stored_as(cell["format"])
        if self.stored == "raw" and not self.spec["raw"]:
            raise Absent("reads encoded images alone")
        self.shape = shapes.parse(cell["storage"])
        check_storage(self.spec, self.shape)
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{cell['loader']}.log"
        self.task = {**images.task(self.stored, cell["side"], quality),
                     **{key: getattr(chosen, key) for key in ("transform", "size", "short",
                                                             "batch")},
                     "threads": cell["threads"], "options": self.spec["options"],
                     "check": check_of(chosen.transform, self.stored),
                     "cases": images.cases(chosen.size, chosen.short)}
        self.place: shapes.Place | None = None
        self.storage = contextlib.ExitStack()
        self.worker = self._start([], {})
        self.passes = 1

    def _start(self, words: list[str], variables: dict[str, str]) -> Worker:
        spec = {**self.spec, "variables": {**self.spec["variables"], **variables}}
        return Worker(self.cell["loader"], spec, python_for(self.spec), self.log, words=words)

    def prepared(self) -> dict[str, Any]:
        try:
            ready = self.worker.prepare(self.task)
            files, pack = ready.pop("files"), ready.pop("pack")
            checked = self._check()
            if files:
                ready.update(self._apply(files, pack))
            if isinstance(self.place, shapes.StorePlace):
                checked = self._check()  # of what comes from the store
        except BaseException:
            self.close()
            raise
        return {**ready, "title": self.spec["title"], "check": checked}

    def _check(self) -> dict[str, Any]:
        return self.worker.check(self.images.folder / f"{self.task['check']}.npy")

    def _apply(self, files: list[str], pack: str) -> dict[str, Any]:
        """The storage for what the loader has stored; a simulated one needs another process, which
        has notes of its own."""
        self.place = self.storage.enter_context(self.shape.apply(self._read(files)))
        if type(self.shape) in (shapes.Shape, shapes.Cache):
            return {}
        self.worker.stop()
        task = moved(self.task, self.place, files, pack, self.images.folder)
        if isinstance(self.place, shapes.StorePlace):
            cache = tempfile.TemporaryDirectory(prefix="cache-", dir=self.images.folder,
                                                ignore_cleanup_errors=True)
            task["cache"] = self.storage.enter_context(cache)
        self.worker = self._start(self.place.words, self.place.environment)
        self.place.join(self.worker.process.pid)
        return {"notes": self.worker.prepare(task)["notes"]}

    def _read(self, files: list[str]) -> list[str]:
        """What the storage holds: these files, or everything that is made of the images."""
        made = str(self.images.folder.resolve()) + os.sep
        plain = isinstance(self.shape, shapes.Cache)
        inside = all(os.path.realpath(file).startswith(made) for file in files)
        return [made] if inside and not plain else files

    def shapes(self) -> list[dict[str, Any]]:
        return [check.record() for check in self.place.checks] if self.place else []

    def _first(self) -> dict[str, Any]:
        """The first epoch; a second one tells how many are one turn."""
        with MemoryWatch(self.worker.process.pid) as memory:
            first = self.worker.turn(passes=1)
            if self.cell["storage"] in ("warm", "local"):
                again = self.worker.turn(passes=1)
                seconds = again["seconds"] + self.chosen.consumer / 1000 * again["batches"]
                self.passes = figures.passes_for(seconds, self.chosen.seconds)
        return {**first, "memory_mb": round(memory.peak / 1e6)}

    def turn(self, number: int) -> dict[str, Any]:
        if self.place:
            self.place.refresh()
        if number == WARM_UP:
            return self._first()
        with Watch(self.worker.process.pid) as watch:
            found = self.worker.turn(passes=self.passes, consumer_ms=self.chosen.consumer)
        found["read_mb"] = round(watch.read / 1e6, 3)
        if watch.joules is not None:
            found["joules"] = round(watch.joules, 3)
        if "bottleneck" not in found:
            threads = self.cell["threads"]
            found["bottleneck"] = limited_by(found, threads, watch.cores, watch.disk_share)
            found["bottleneck_by"] = "/proc"
        return found

    def close(self) -> None:
        self.worker.stop()
        self.storage.close()


def moved(task: dict[str, Any], place: shapes.Place, files: list[str], pack: str,
          folder: pathlib.Path) -> dict[str, Any]:
    """The task of a worker that reads from a simulated storage what another one has stored."""
    if isinstance(place, shapes.StorePlace):
        return {**task, "addresses": [place.address(file) for file in files],
                "pack": place.address(pack) if pack else ""}
    if place.folder == place.origin:
        return task
    if place.origin.resolve() == folder.resolve():
        return {**task, "work": str(place.folder),
                "pack": str(place.path(pack)) if pack and task["pack"] else ""}
    listing = folder / f"{task['set']}-moved-{os.getpid()}.txt"
    listing.write_text("".join(f"{place.path(file)}\n" for file in files), encoding="utf-8")
    more = {"pack": str(place.path(pack))} if task["pack"] else {}
    return {**task, "list": str(listing), **more}


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
