# SPDX-License-Identifier: Apache-2.0
"""What an image costs: a cell is one value of one part, and a turn is one `penstock doctor`."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any, NamedTuple

import penstock

from .. import program
from ..errors import LabError
from ..experiment import inputs, parameters
from ..experiment.parameters import option
from ..experiment.question import Arm, Cell, Question
from .packs import Packs

PIPELINE = "decode | random_resized_crop 224 | hflip | tensor u8"
THUMBNAIL_PIPELINE = "decode | random_resized_crop 56 | hflip | tensor u8"
BATCH = 256
# What grows: each is also the name of the parameter that has its values.
PARTS = ("threads", "packs", "thumbnails", "batches", "sides")


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    source: str = option("", "a folder of images, or a pack", positional=True)
    parts: tuple[str, ...] = option(PARTS, "what grows", choices=PARTS)
    threads: tuple[int, ...] = option((1, 2), "threads; the largest number is that of the other "
                                      "parts", short="t")
    packs: tuple[int, ...] = option((1000, 10_000), "images of a pack")
    thumbnails: tuple[int, ...] = option((100_000,), "thumbnails of a pack")
    batches: tuple[int, ...] = option((1, 2, 4, 16, 64, 256, 1024, 2048), "images of a batch")
    sides: tuple[int, ...] = option((160, 256, 400, 500, 640, 1000, 1600, 2500, 4000),
                                    "width of the images in pixels; larger ones are made of "
                                    "several images of SOURCE")
    images: int = option(10_000, "images of the pack of threads and batches", short="n")
    side_images: int = option(200, "images of each pack of sides, and of its batches")
    seconds: int = option(5, "seconds of 'penstock doctor', which takes up to 3 times as long",
                          short="s")
    work: str = option("", "folder of the packs, for several runs; empty: the folder of the run",
                       path=True)


def check(chosen: Parameters) -> None:
    if not chosen.source:
        raise LabError("expected a folder of images or a pack: penstock-lab growth photos/")
    for name in (*PARTS, "images", "side_images", "seconds"):
        values = getattr(chosen, name)
        for value in values if isinstance(values, tuple) else (values,):
            if value < 1:
                raise LabError(f"{name}: expected at least 1, found {value}")
    for name in ("parts", *PARTS):
        if not getattr(chosen, name):
            raise LabError(f"{name}: expected at least one value, found none")


class Load(NamedTuple):
    """What one cell loads, and how."""

    pack: pathlib.Path
    threads: int
    batch: int = BATCH
    pipeline: str = PIPELINE


def warm(pack: pathlib.Path) -> None:
    """Read a pack into the page cache."""
    for file in pack.rglob("*.shard"):
        with open(file, "rb", buffering=0) as opened:
            while opened.read(1 << 22):
                pass


def first_batch(load: Load) -> float:
    """Seconds from opening a pack to its first batch."""
    began = time.perf_counter()
    with penstock.open(load.pack) as pack, penstock.Loader(
            pack, load.batch, shuffle=True, pipeline=load.pipeline, threads=load.threads,
            output="numpy") as loader:
        next(iter(loader))
        return time.perf_counter() - began


class Bench(Arm):
    def __init__(self, load: Load, seconds: int) -> None:
        self.load, self.seconds = load, seconds

    def prepared(self) -> dict[str, Any]:
        told = inputs.describe(self.load.pack)
        return {"pack": str(self.load.pack), "images": told["samples"], "pack_bytes": told["bytes"],
                **{name: getattr(self.load, name) for name in ("threads", "batch", "pipeline")}}

    def turn(self, number: int) -> dict[str, Any]:
        load = self.load
        warm(load.pack)
        told = program.output_json(
            "doctor", load.pack, "--threads", str(load.threads), "--batch", str(load.batch),
            "--seconds", str(self.seconds), "--pipeline", load.pipeline, "--json")
        each = told["cpu_seconds_per_1000_samples"]
        return {
            "seconds": told["seconds"], "samples": told["samples"],
            "cpu": round(each * told["samples"] / 1000, 6),
            "first_batch_seconds": round(first_batch(load), 6),
            "p99_ms": told["wait_for_a_batch"]["p99_ms"],
            "loader_mb": round(told["loader_memory_reserved_bytes"] / 1e6, 3),
            "bottleneck": told["bottleneck"],
        }


class Growth(Question):
    warm_up = False  # each turn is a process of its own, and reads the pack before

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen = chosen
        self.packs = Packs(chosen.source, pathlib.Path(chosen.work or folder / "work"))

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.chosen.source)]

    def groups(self) -> list[list[Cell]]:
        return [[{"part": part, "value": value} for value in getattr(self.chosen, part)]
                for part in self.chosen.parts]

    def _load(self, part: str, value: int) -> Load:
        threads, packs, count = max(self.chosen.threads), self.packs, self.chosen.side_images
        if part == "packs":
            return Load(packs.of_count(value), threads)
        if part == "thumbnails":
            return Load(packs.thumbnails(value), threads, pipeline=THUMBNAIL_PIPELINE)
        if part == "sides":
            return Load(packs.of_side(value, count), threads, count)
        pack = packs.of_count(self.chosen.images)
        return Load(pack, value) if part == "threads" else Load(pack, threads, value)

    def open(self, cell: Cell) -> Arm:
        return Bench(self._load(cell["part"], cell["value"]), self.chosen.seconds)
