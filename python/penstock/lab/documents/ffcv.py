# SPDX-License-Identifier: Apache-2.0
"""FFCV: from a disk whose bandwidth is the limit, images/s = bandwidth / bytes per image."""

from __future__ import annotations

import pathlib
import shutil
import statistics
from typing import NamedTuple

from .. import program, shapes
from ..errors import Absent
from ..experiment.inputs import on_disk
from ..shapes.shape import Place
from . import ffcv_sizes, turns
from .figure import Figure, Options, Stopwatch, absent
from .gulpio import photographs

TITLE = "FFCV benchmarks"
SOURCE = "https://docs.ffcv.io/benchmarks.html"
COMMAND = "penstock-lab seeds ffcv"

MB_PER_SECOND = 19.0  # 2 of the 96 cores there, of about 0.93 GB/s
THREADS, BATCH = 2, 32
PIPELINE = "decode | random_resized_crop 224 | hflip | tensor u8"
WHY = "the processor or other readers of the disk are a limit too"
WHOLE = "decode | resize 224,224 | hflip | tensor u8"  # needs all bytes of an image
# Name: options of pack, images used, images/s there, bytes per image there.
SETS: dict[str, tuple[list[str], int, float, float]] = {
    "512 raw": (["--mode", "raw", "--max-side", "512"], 250, 1956, 941e6 / 1956),
    "256 raw": (["--mode", "raw", "--max-side", "256"], 800, 6870, 910e6 / 6870),
    "512 JPEG 90": (["--mode", "encode", "--quality", "90", "--max-side", "512"], 1000, 16631,
                    850e6 / 16631),
}


class Rate(NamedTuple):
    images: float  # per second
    read: float  # bytes from the disk for each image


class Measured(NamedTuple):
    whole: Rate
    crops: Rate
    stored: float  # bytes of an image in the pack
    checks: str

    @property
    def law(self) -> float:
        return MB_PER_SECOND * 1e6 / self.stored


def links(options: Options, count: int) -> pathlib.Path:
    """A folder of `count` photographs; some are used several times if there are fewer."""
    folder = options.folder(f"photos-{count}")
    photos = photographs(options.photos)
    for number in range(count):
        photo = photos[number * len(photos) // count if count < len(photos) else
                       number % len(photos)]
        link = folder / "photo" / f"{number:06}{photo.suffix}"
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(photo.resolve())
    return folder


def make(options: Options, name: str) -> pathlib.Path:
    words, count, *_ = SETS[name]
    pack = options.folder("ffcv") / f"{name.replace(' ', '-').lower()}.pen"
    if not (pack / "manifest").exists():
        options.say(f"FFCV: packing {count} images, {name}")
        shutil.rmtree(pack, ignore_errors=True)
        program.output("pack", links(options, count), "-o", pack, *words)
    return pack


def rate_of(options: Options, place: Place, pack: pathlib.Path, pipeline: str) -> Rate:
    """Of complete epochs that start with a cold page cache."""
    task = {"path": str(pack), "batch": BATCH, "order": "shuffle", "threads": THREADS,
            "pipeline": pipeline, "epochs": 1, "memory": "256MiB"}
    rates, read = [], []
    for _ in range(options.rounds):
        done = turns.turn("pack", task, place)
        [epoch] = done["epochs"]
        rates.append(epoch["samples"] / epoch["seconds"])
        read.append(done["counts"]["disk_bytes"] / epoch["samples"])
    return Rate(statistics.mean(rates), statistics.mean(read))


def measure(options: Options, name: str) -> Measured:
    pack, count = make(options, name), SETS[name][1]
    with shapes.Disk(MB_PER_SECOND).apply([pack]) as place:
        whole = rate_of(options, place, pack, WHOLE)
        crops = rate_of(options, place, pack, PIPELINE)
        checks = "; ".join(map(str, place.checks))
    return Measured(whole, crops, on_disk(pack)["bytes"] / count, checks)


def law_figures(name: str, found: Measured, rounds: int, seconds: float) -> list[Figure]:
    """Of entire images, which the law is about; and of crops, which may need less of an image."""
    there, bytes_there = SETS[name][2:]
    rows = []
    for what, rate in (("entire images", found.whole), ("RandomResizedCrop", found.crops)):
        off = rate.images / found.law - 1
        verdict = "within 10 %" if abs(off) <= 0.1 else "more than 10 % off"
        note = (f"law: {MB_PER_SECOND:g} MB/s / {found.stored / 1e3:.1f} kB stored = "
                f"{found.law:.1f} images/s; {off:+.1%}: {verdict}. Read from the disk: "
                f"{rate.read / 1e3:.1f} kB per image, {rate.read * rate.images / 1e6:.1f} MB/s. "
                f"n = {rounds}, cold page cache, {THREADS} threads. There: RandomResizedCrop, "
                f"{bytes_there / 1e3:.0f} kB per image. {found.checks}")
        rows.append(Figure(f"images/s from a disk, {name}, {what}; relative to the law",
                           f"{there:,.0f} images/s; 1.00",
                           f"{rate.images:.1f} images/s; {1 + off:.2f}", 1 + off, True, note,
                           COMMAND, seconds, WHY if off < -0.1 else ""))
        seconds = 0.0
    return rows


def order_figure(found: dict[str, Measured]) -> Figure:
    def text(values: list[float]) -> str:
        return " : ".join(f"{value / values[0]:.1f}" for value in values)

    there, ours = [SETS[name][2] for name in SETS], [found[name].whole.images for name in SETS]
    return Figure(f"images/s, {' : '.join(SETS)}, entire images", text(there), text(ours), None,
                  True, "the photographs here have other sizes than ImageNet's", COMMAND)


def figures(options: Options) -> list[Figure]:
    rows = ffcv_sizes.figures(options, COMMAND)
    found: dict[str, Measured] = {}
    watch = Stopwatch()
    for name in SETS:
        options.say(f"FFCV: {name} from a disk with {MB_PER_SECOND:g} MB/s")
        try:
            found[name] = measure(options, name)
            rows += law_figures(name, found[name], options.rounds, watch.lap())
        except Absent as reason:
            published = f"{SETS[name][2]:,.0f} images/s"
            rows.append(absent(f"images/s from a disk, {name}", published, reason, COMMAND))
    return [*rows, order_figure(found)] if len(found) == len(SETS) else rows
