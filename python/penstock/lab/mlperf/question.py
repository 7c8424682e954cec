# SPDX-License-Identifier: Apache-2.0
"""How many simulated accelerators this host feeds, one search in each turn."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import penstock

from .. import program
from ..errors import LabError
from ..experiment import inputs, parameters
from ..experiment.question import WARM_UP, Arm, Cell, Question
from . import accelerator, images
from .accelerator import Point
from .workloads import WORKLOADS, Workload, workload

EPOCH_BATCHES = 64  # small packs are read several times in one epoch


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    source: str = parameters.option("", "a pack, or a folder of images", positional=True)
    workloads: tuple[str, ...] = parameters.option(tuple(WORKLOADS), "what is simulated")
    retinanet: str = parameters.option("", "a pack or a folder for retinanet (default: 323 kB "
                                       "files are made from the images of SOURCE)", path=True)
    images: int = parameters.option(240, "images made for retinanet", short="n")
    threads: tuple[int, ...] = parameters.option((0,), "decoding threads; 0: one per core",
                                                 short="t")
    seconds: float = parameters.option(4.0, "seconds of each measurement of a search", short="s")
    cold: bool = parameters.option(False, "remove the pack from the page cache before each "
                                   "measurement")


def check(chosen: Parameters) -> None:
    if not chosen.source:
        raise LabError("expected a pack or a folder of images: penstock-lab mlperf photos/")
    for name in chosen.workloads:
        workload(name)
    for name in ("images", "seconds"):
        if getattr(chosen, name) <= 0:
            raise LabError(f"{name}: expected more than 0, found {getattr(chosen, name)}")
    if min(chosen.threads) < 0:
        raise LabError(f"threads: expected at least 0, found {min(chosen.threads)}")


def cool(path: pathlib.Path) -> None:
    """Remove the files of a pack from the page cache."""
    for file in path.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


class Search(Arm):
    """One workload, read by one loader."""

    def __init__(self, chosen: Parameters, one: Workload, pack: str, threads: int) -> None:
        self.chosen, self.one, self.path = chosen, one, pack
        self.pack = penstock.open(pack)
        n = len(self.pack)
        times = -(-one.batch * EPOCH_BATCHES // n)
        self.loader = penstock.Loader(
            self.pack, one.batch, order=one.order, pipeline=one.pipeline, drop_last=True,
            output="dlpack", threads=threads or None, prefetch=accelerator.PREFETCH,
            subset=[*range(n)] * times if times > 1 else None)
        self.batches = self._forever()
        self.guess = 0.0

    def _forever(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def prepared(self) -> dict[str, Any]:
        info = inputs.describe(self.path)
        return {"pack": self.path, "images": len(self.pack), "pack_bytes": info["bytes"],
                "image_bytes": round(info["bytes"] / len(self.pack)), "simulated": True,
                "page_cache": "cold" if self.chosen.cold else "warm"}

    def measure(self, accelerators: float) -> Point:
        if self.chosen.cold:
            cool(pathlib.Path(self.path))
        return accelerator.consume(self.batches, self.one, accelerators, self.chosen.seconds)

    def turn(self, number: int) -> dict[str, Any]:
        if not self.guess or number == WARM_UP:
            point = self.measure(0.0)
            self.guess = point.samples / point.seconds / self.one.rate / self.one.utilization
        if number == WARM_UP:
            return {"seconds": point.seconds, "samples": point.samples, "cpu": point.cpu}
        points = accelerator.search(self.measure, self.one.utilization, self.guess)
        best = accelerator.fed(points, self.one.utilization)
        all_of = {"seconds": sum(p.seconds for p in points),
                  "samples": sum(p.samples for p in points), "cpu": sum(p.cpu for p in points),
                  "points": [list(point) for point in points], "simulated": True}
        if best is None:
            return {**all_of, "accelerators": 0.0, "utilization": 0.0, "cores": 0.0}
        self.guess = best.accelerators
        return {**all_of, "accelerators": best.accelerators, "utilization": best.utilization,
                "cores": best.cores, "rate": best.samples / best.seconds}

    def close(self) -> None:
        self.loader.close()


class MlPerf(Question):
    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen, self.folder = chosen, folder

    def inputs(self) -> list[dict[str, Any]]:
        given = [self.chosen.source, *filter(None, [self.chosen.retinanet])]
        return [inputs.describe(path) for path in given]

    def groups(self) -> list[list[Cell]]:
        threads = [{"threads": count} for count in self.chosen.threads]
        return [[{"workload": name, **count} for count in threads]
                for name in self.chosen.workloads]

    def _images(self, one: Workload) -> str:
        """A pack, or a folder to pack."""
        if one.name != "retinanet":
            return self.chosen.source
        if self.chosen.retinanet:
            return self.chosen.retinanet
        made = self.folder / "work" / "retinanet"
        return str(images.generate(self.chosen.source, made, one.image_bytes, self.chosen.images))

    def _pack(self, one: Workload) -> str:
        source = self._images(one)
        if inputs.is_pack(source):
            return source
        packed = self.folder / "work" / f"{one.name}.pen"
        if not packed.exists():
            packed.parent.mkdir(parents=True, exist_ok=True)
            program.output("pack", source, "-o", packed)
        return str(packed)

    def open(self, cell: Cell) -> Arm:
        one = workload(cell["workload"])
        return Search(self.chosen, one, self._pack(one), cell["threads"])
