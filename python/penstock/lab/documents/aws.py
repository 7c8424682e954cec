# SPDX-License-Identifier: Apache-2.0
"""AWS, GPU performance tuning: 1 worker, many workers, and images that were resized out of
band."""

from __future__ import annotations

import os
import pathlib
import shutil
import statistics
from typing import Any

from .. import program
from ..errors import Absent
from ..shapes.shape import Place
from . import turns
from .figure import Figure, Options, Stopwatch, Waits, absent, read_waits, save_waits, times
from .gulpio import photographs

TITLE = "AWS: GPU performance tuning"
SOURCE = "https://github.com/aws-samples/sagemaker-gpu-performance-io-deeplearning"
COMMAND = "penstock-lab seeds aws"

COUNT, BATCH, SIDE, EPOCHS = 1000, 32, 256, 3
RESIZED = "decode | random_crop 224 | tensor f32"
NAIVE = f"decode | resize {SIDE},{SIDE} | random_crop 224 | tensor f32"
# Seconds per epoch and use of the GPU there, for 1 and for 7 workers.
ONE_WORKER, SEVEN_WORKERS, PEAK, AVERAGE = 260.0, 96.0, 0.50, 0.95
BY_THREADS = "all workers / 1 worker, images/s"
OUT_OF_BAND = "images resized out of band / resized on the fly, 1 worker, images/s"
THERE_BUSY = "50 % (peak), 95 %, -"
BUSY = "use of the accelerator: 1 worker, all workers, resized out of band with 1 worker"


def originals(options: Options) -> pathlib.Path:
    pack = options.folder("aws") / "originals.pen"
    if not (pack / "manifest").exists():
        shutil.rmtree(pack, ignore_errors=True)
        options.say("AWS: packing the originals")
        program.output("pack", options.photos, "-o", pack)
    return pack


def resized(options: Options) -> pathlib.Path:
    """All photographs at 256 x 256, as pixels: what the notebook pickles."""
    try:
        from PIL import Image
    except ImportError:
        raise Absent("the images are resized with Pillow: pip install pillow") from None
    folder = options.folder("aws")
    pack, images = folder / "resized.pen", folder / "resized"
    if (pack / "manifest").exists():
        return pack
    options.say(f"AWS: resizing photographs to {SIDE} x {SIDE}")
    shutil.rmtree(pack, ignore_errors=True)
    images.mkdir(exist_ok=True)
    for number, photo in enumerate(photographs(options.photos)[:COUNT]):
        with Image.open(photo) as image:
            image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR).save(
                images / f"{number:06}.png", compress_level=1)
    program.output("pack", images, "-o", pack, "--mode", "raw")
    shutil.rmtree(images)
    return pack


class Arm:
    """One of the three ways to load."""

    def __init__(self, name: str, pack: pathlib.Path, pipeline: str, threads: int) -> None:
        self.name, self.pack = name, pack
        self.task: dict[str, Any] = {
            "path": str(pack), "batch": BATCH, "order": "random", "threads": threads,
            "pipeline": pipeline, "epochs": EPOCHS}
        self.rates: list[float] = []
        self.busy: list[float] = []
        self.waits: list[list[float]] = []

    def turn(self, step: float) -> None:
        done = turns.turn("pack", {**self.task, "step": step}, Place(self.pack.parent))
        later = done["epochs"][1:]  # the first epoch starts the threads
        seconds, samples = (sum(epoch[key] for epoch in later) for key in ("seconds", "samples"))
        if step:
            self.busy.append(1 - sum(epoch["data"] for epoch in later) / seconds)
            self.waits = later[-1]["waits"]
        else:
            self.rates.append(samples / seconds)

    @property
    def rate(self) -> float:
        return statistics.mean(self.rates)

    def __str__(self) -> str:
        spread = statistics.stdev(self.rates) if len(self.rates) > 1 else 0.0
        return f"{self.name} {self.rate:,.0f} images/s (sd {spread:,.0f})"


def measure(options: Options, arms: list[Arm], step: float) -> None:
    for number in range(options.rounds):
        for arm in arms:
            options.say(f"AWS: round {number + 1}, {arm.name}" + (", with steps" if step else ""))
            arm.turn(step)


def _why(cores: int, ours: float, published: float) -> str:
    if ours >= published:
        return ""
    return (f"7 workers had 8 vCPUs there; this machine has {cores} cores, so more workers decode "
            f"at most {cores} times as fast")


def figures(options: Options) -> list[Figure]:
    watch, cores = Stopwatch(), len(os.sched_getaffinity(0))
    published = ONE_WORKER / SEVEN_WORKERS
    try:
        one = Arm("1 thread", originals(options), NAIVE, 1)
        everything = Arm(f"{cores} threads", one.pack, NAIVE, cores)
        prepared = Arm("resized, 1 thread", resized(options), RESIZED, 1)
    except Absent as reason:
        return [absent(what, there, reason, COMMAND) for what, there in
                ((BY_THREADS, times(published)), (OUT_OF_BAND, times(published)),
                 (BUSY, THERE_BUSY))]
    arms = [one, everything, prepared]
    measure(options, arms, 0.0)
    rates = f"n = {options.rounds}; " + ", ".join(map(str, arms))
    by_threads, by_size = everything.rate / one.rate, prepared.rate / one.rate
    found = [
        Figure(BY_THREADS, f"{times(published)} (7 workers, 260 s / 96 s)", times(by_threads),
               by_threads / published, False, rates, COMMAND, watch.lap(),
               _why(cores, by_threads, published)),
        Figure(OUT_OF_BAND, f"{times(published)} (\"same performance as multiple workers\")",
               times(by_size), by_size / published, False, rates, COMMAND, watch.lap()),
    ]
    # There, the GPU waited half of the time for 1 worker.
    step = PEAK * BATCH / one.rate
    measure(options, arms, step)
    save_waits(options.folder("aws"), {arm.name: arm.waits for arm in arms})
    busy = [statistics.mean(arm.busy) for arm in arms]
    note = (f"n = {options.rounds}; a step is a pause of {1000 * step:.1f} ms for {BATCH} images, "
            "half of the time that 1 thread needs for them")
    found.append(Figure(BUSY, THERE_BUSY, ", ".join(f"{b:.0%}" for b in busy),
                        busy[1] / AVERAGE, True, note, COMMAND, watch.lap(),
                        _why(cores, busy[1], AVERAGE)))
    return found


def waits(options: Options) -> Waits:
    return read_waits(options.folder("aws"))
