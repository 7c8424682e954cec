# SPDX-License-Identifier: Apache-2.0
"""Concurrent Dataloader: S3 beside a local disk, and how much concurrent requests help."""

from __future__ import annotations

import os
import pathlib
import shutil
import statistics
from typing import Any

from .. import shapes
from ..errors import Absent
from ..shapes.shape import Place
from . import turns
from .dl2 import make as packed
from .figure import Figure, Options, Stopwatch, Waits, absent, read_waits, save_waits, times
from .gulpio import photographs

TITLE = "Concurrent Dataloader"
SOURCE = "https://github.com/iarai/concurrent-dataloader"
COMMAND = "penstock-lab seeds concurrent"

LATENCY_MS = 110.0  # 4 workers / 36.2 images/s there
WORKERS, BATCH, OBJECTS = 4, 32, 256
PIPELINE = "decode | random_resized_crop 224 | hflip | tensor f32"
THREADS = 2
LOCAL, S3 = 555.0, 36.2  # images/s there
WITHIN, ACROSS_THERE = 359.7 / 39.6, 376.3 / 39.6  # speed-up by requests within, across batches
IDLE_S3, IDLE_LOCAL = 0.9493, 0.3126
SLOWER = "local / S3, images/s, one request at a time in 4 workers"
HELPS = "concurrent requests within a batch / one at a time, S3, images/s"
ACROSS = "penstock (requests across batches) / one request at a time, S3, images/s"
SHARE = "S3 with concurrent requests / local, images/s"
IDLE = "accelerator idle: S3 with one request at a time, local, S3 with penstock"
THERE = {
    SLOWER: f"{times(LOCAL / S3)} (555 / 36.2)",
    HELPS: f"{times(WITHIN)} (asyncio)",
    ACROSS: f"{times(ACROSS_THERE)} (threaded)",
    SHARE: "65 % (359.7 / 555)",
    IDLE: f"{IDLE_S3:.1%}, {IDLE_LOCAL:.1%}, -",
}
TAINTED = "The threaded loader there does not load the samples that the sampler chooses. "


def objects(options: Options) -> pathlib.Path:
    """A folder of photographs, for the store."""
    folder = options.folder("concurrent") / "objects"
    folder.mkdir(exist_ok=True)
    photos = photographs(options.photos)
    for number in range(OBJECTS):
        file = folder / f"{number:06}.jpg"
        if not file.exists():
            shutil.copyfile(photos[number % len(photos)], file)
    return folder


class Arm:
    """One loader on one storage."""

    def __init__(self, name: str, kind: str, place: Place, **task: Any) -> None:
        self.name, self.kind, self.place, self.task = name, kind, place, task
        self.rates: list[float] = []
        self.idle: list[float] = []
        self.waits: list[list[float]] = []

    def turn(self, step: float) -> None:
        done = turns.turn(self.kind, {**self.task, "step": step}, self.place)
        epoch = done["epochs"][-1]  # the first one starts workers and connections
        if step:
            self.idle.append(epoch["data"] / epoch["seconds"])
            self.waits = epoch["waits"]
        else:
            self.rates.append(epoch["samples"] / epoch["seconds"])

    @property
    def rate(self) -> float:
        return statistics.mean(self.rates)

    def __str__(self) -> str:
        spread = statistics.stdev(self.rates) if len(self.rates) > 1 else 0.0
        return f"{self.name} {self.rate:,.1f} images/s (sd {spread:,.1f})"


def arms_of(options: Options, store: shapes.StorePlace) -> dict[str, Arm]:
    folder, pack = objects(options), packed(options, None)
    local = Place(folder.parent)
    files = {"path": str(folder), "samples": OBJECTS, "batch": BATCH, "workers": WORKERS,
             "epochs": 2}
    remote = {**files, "path": store.address(folder)}
    ours = {"batch": BATCH, "order": "shuffle", "threads": THREADS, "pipeline": PIPELINE,
            "epochs": 2, "memory": "1GiB"}
    return {
        "one": Arm("DataLoader, S3, one request at a time", "files", store, **remote, requests=1),
        "within": Arm("DataLoader, S3, 16 requests within a batch", "files", store, **remote,
                      requests=16),
        "local": Arm("DataLoader, local", "files", local, **files, requests=1),
        "ours": Arm("penstock, S3", "pack", store, **ours, path=store.address(pack)),
        "ours local": Arm("penstock, local", "pack", local, **ours, path=str(pack)),
    }


def measure(options: Options, arms: dict[str, Arm], step: float) -> None:
    for number in range(options.rounds):
        for arm in arms.values():
            options.say(f"Concurrent: round {number + 1}, {arm.name}"
                        + (", with steps" if step else ""))
            arm.turn(step)


def of_local(rate: float, local: float) -> str:
    """Why more requests would not help, or that they would."""
    share = rate / local
    limit = "the requests are not the limit" if share >= 0.9 else "requests are a limit"
    return f"it has {share:.0%} of the rate of local files with the same loader: {limit}"


def rate_figures(arms: dict[str, Arm], note: str, watch: Stopwatch) -> list[Figure]:
    one, within, local = (arms[name].rate for name in ("one", "within", "local"))
    slower, helps, across = local / one, within / one, arms["ours"].rate / one
    share = arms["ours"].rate / arms["ours local"].rate
    cores = len(os.sched_getaffinity(0))
    why = f"from local files, 4 workers share {cores} cores"
    return [
        Figure(SLOWER, THERE[SLOWER], times(slower),
               slower / (LOCAL / S3), True, note, COMMAND, watch.lap(),
               why if slower < LOCAL / S3 else ""),
        Figure(HELPS, THERE[HELPS], times(helps), helps / WITHIN, True,
               note, COMMAND, why=of_local(within, local) if helps < WITHIN else ""),
        Figure(ACROSS, THERE[ACROSS], times(across), across / ACROSS_THERE, True,
               TAINTED + note, COMMAND, why=of_local(arms["ours"].rate, arms["ours local"].rate)
               if across < ACROSS_THERE else ""),
        Figure(SHARE, THERE[SHARE], f"{share:.0%}", share / (359.7 / LOCAL), True,
               "Both with penstock. " + note, COMMAND,
               why="two requests of 110 ms come before the first batch of an epoch"
               if share < 359.7 / LOCAL else ""),
    ]


def idle_figure(options: Options, arms: dict[str, Arm], watch: Stopwatch) -> Figure:
    """With a step for which the local loader leaves the accelerator as idle as there."""
    step = (1 - IDLE_LOCAL) * BATCH / arms["local"].rate
    some = {name: arms[name] for name in ("one", "local", "ours")}
    measure(options, some, step)
    one, local, ours = (statistics.mean(arm.idle) for arm in some.values())
    note = (f"n = {options.rounds}; a step is a pause of {1000 * step:.0f} ms for {BATCH} images. "
            "The first batch counts. The ratio is that of S3 with one request at a time")
    shares = f"{one:.1%}, {local:.1%}, {ours:.1%}"
    return Figure(IDLE, THERE[IDLE], shares, one / IDLE_S3, True, note, COMMAND, watch.lap())


def figures(options: Options) -> list[Figure]:
    watch = Stopwatch()
    try:
        folder = options.folder("concurrent")
        with shapes.Store(LATENCY_MS).apply([folder.parent]) as store:
            arms = arms_of(options, store)
            measure(options, arms, 0.0)
            note = "; ".join([f"n = {options.rounds}", *map(str, arms.values()),
                              *map(str, store.checks)])
            found = rate_figures(arms, note, watch)
            found.append(idle_figure(options, arms, watch))
            save_waits(folder, {arm.name: arm.waits for arm in arms.values() if arm.waits})
        return found
    except Absent as reason:
        return [absent(what, there, reason, COMMAND) for what, there in THERE.items()]


def waits(options: Options) -> Waits:
    return read_waits(options.folder("concurrent"))
