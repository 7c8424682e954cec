# SPDX-License-Identifier: Apache-2.0
"""(DL)2: throughput by quality, from a slow disk with a page cache between the two sizes."""

from __future__ import annotations

import pathlib
import shutil
import statistics
from typing import Any

from .. import program, shapes
from ..errors import Absent
from ..experiment.inputs import on_disk
from . import turns
from .ffcv import PIPELINE, THREADS, links
from .figure import Figure, Options, Stopwatch, absent, times

TITLE = "(DL)2"
SOURCE = "https://github.com/lbhm/dl2"
COMMAND = "penstock-lab seeds dl2"

COUNT, BATCH, MEMORY = 4000, 64, "128MiB"
WHAT = "loader alone from a slow disk, images/s of JPEG 75 / images/s of the originals"
FROM_MEMORY = "loader alone from memory, images/s of JPEG 75 / images/s of the originals"
RAW_DISK, RAW_MEMORY, Q75_DISK, Q75_MEMORY = 204.0, 2461.0, 2954.0, 2973.0  # images/s there
CACHED = 64 / 138  # page cache / originals there
DISK_SHARE = RAW_DISK / RAW_MEMORY  # of the originals
SPARE = 1.15  # page cache for the smaller set, at least
PLENTY = 64 << 30  # bytes: no limit


def make(options: Options, quality: int | None) -> pathlib.Path:
    name = f"q{quality}" if quality else "originals"
    pack = options.folder("dl2") / f"{name}-{COUNT}.pen"
    if not (pack / "manifest").exists():
        options.say(f"(DL)2: packing {COUNT} images, {name}")
        shutil.rmtree(pack, ignore_errors=True)
        words = ["--mode", "encode", "--quality", str(quality)] if quality else []
        program.output("pack", links(options, COUNT), "-o", pack, *words)
    return pack


def task_of(pack: pathlib.Path, epochs: int) -> dict[str, Any]:
    return {"path": str(pack), "batch": BATCH, "order": "random", "threads": THREADS,
            "pipeline": PIPELINE, "epochs": epochs, "memory": MEMORY}


def rate(epochs: list[dict[str, Any]]) -> float:
    """Without the first epoch, which fills the page cache."""
    return statistics.mean(float(epoch["samples"] / epoch["seconds"]) for epoch in epochs[1:])


def from_memory(pack: pathlib.Path) -> tuple[float, int]:
    """Images/s from the page cache, and the memory that the process needs beside it."""
    with shapes.Memory(PLENTY).apply([pack], measure=False) as place:
        done = turns.turn("pack", task_of(pack, 2), place)
    return rate(done["epochs"]), max(epoch["memory"] for epoch in done["epochs"])


def from_disk(pack: pathlib.Path, shape: shapes.Shape, epochs: int) -> tuple[float, str]:
    with shape.apply([pack]) as place:
        done = turns.turn("pack", task_of(pack, epochs), place)
        return rate(done["epochs"]), "; ".join(map(str, place.checks))


def memory_figure(options: Options, pack: pathlib.Path, originals: float) -> Figure:
    """What a quality changes where no disk is the limit."""
    watch = Stopwatch()
    options.say("(DL)2: q75 from memory")
    rate_q75, _ = from_memory(pack)
    ours, published = rate_q75 / originals, Q75_MEMORY / RAW_MEMORY
    return Figure(FROM_MEMORY, f"{published:.2f} times (2,973 / 2,461)",
                  f"{ours:.2f} times ({rate_q75:.0f} / {originals:.0f})", ours / published, False,
                  f"one epoch after the first, {THREADS} threads", COMMAND, watch.lap(),
                  "penstock decodes only the part of a JPEG that a crop needs, so fewer bytes save "
                  "less time" if ours < published else "")


def measure(options: Options) -> list[Figure]:
    watch = Stopwatch()
    packs = {"originals": make(options, None), "q75": make(options, 75)}
    sizes = {name: on_disk(pack)["bytes"] for name, pack in packs.items()}
    options.say("(DL)2: from memory, to choose the disk")
    memory_rate, needed = from_memory(packs["originals"])
    cache = max(SPARE * sizes["q75"], CACHED * sizes["originals"])
    bandwidth = round(DISK_SHARE * memory_rate * sizes["originals"] / COUNT / 1e6, 1)
    disk, memory = shapes.Disk(bandwidth), shapes.Memory(round(needed + cache))
    found, checks = {}, ""
    for name, pack in packs.items():
        options.say(f"(DL)2: {name} from a disk with {bandwidth:g} MB/s")
        found[name], checks = from_disk(pack, shapes.Combined((disk, memory)), 1 + options.rounds)
    ours, published = found["q75"] / found["originals"], Q75_DISK / RAW_DISK
    note = (
        f"n = {options.rounds} epochs after the first, {THREADS} threads; originals "
        f"{sizes['originals'] / 1e6:.0f} MB, JPEG 75 {sizes['q75'] / 1e6:.0f} MB, page cache "
        f"{cache / 1e6:.0f} MB. The bandwidth of the disk is chosen, so the ratio says only that "
        f"the smaller set is read from memory: without a page cache the disk delivers "
        f"{DISK_SHARE * memory_rate:.0f} originals/s, which is {DISK_SHARE:.1%} of the "
        f"{memory_rate:.0f} images/s from memory, as there. {checks}"
    )
    row = Figure(WHAT, f"{times(published)} (2,954 / 204)",
                 f"{times(ours)} ({found['q75']:.0f} / {found['originals']:.0f})",
                 ours / published, True, note, COMMAND, watch.lap(),
                 "pages of the originals that stay in the page cache help the originals, and the "
                 "images of JPEG 75 are decoded by few cores" if ours < published else "")
    return [row, memory_figure(options, packs["q75"], memory_rate)]


def figures(options: Options) -> list[Figure]:
    try:
        return measure(options)
    except Absent as reason:
        return [absent(WHAT, times(Q75_DISK / RAW_DISK), reason, COMMAND),
                absent(FROM_MEMORY, times(Q75_MEMORY / RAW_MEMORY), reason, COMMAND)]
