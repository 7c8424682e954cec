# SPDX-License-Identifier: Apache-2.0
"""(DL)2: what decoding WebP costs beside JPEG."""

from __future__ import annotations

import pathlib
import shutil
import statistics
import time

import penstock

from .. import program
from .ffcv import links
from .figure import Figure, Options, Stopwatch, times

TITLE = "(DL)2, codecs"
SOURCE = "https://github.com/lbhm/dl2"
COMMAND = "penstock-lab seeds dl2_codec"

COUNT, QUALITY = 200, 85
PUBLISHED = 1929 / 705  # images/s of JPEG 85 and WebP 85 there, 4 workers
WHAT = f"time to decode WebP {QUALITY} / JPEG {QUALITY}, 1 thread"


def files_of(options: Options, codec: str) -> list[bytes]:
    """The photographs, encoded anew."""
    pack = options.folder("dl2-codec") / f"{codec}.pen"
    if not (pack / "manifest").exists():
        options.say(f"(DL)2: packing {COUNT} images as {codec} {QUALITY}")
        shutil.rmtree(pack, ignore_errors=True)
        program.output("pack", links(options, COUNT), "-o", pack, "--mode", "encode", "--codec",
                       codec, "--quality", str(QUALITY))
    return encoded(pack)


def encoded(pack: pathlib.Path) -> list[bytes]:
    opened = penstock.open(pack)
    field = next(one.name for one in opened.fields if one.type == "image")
    return [opened.extract(number, field) for number in range(len(opened))]


def seconds(files: list[bytes]) -> float:
    """Processor time of decoding all files to pixels, one after the other."""
    began = time.thread_time()
    for data in files:
        penstock.decode(data)
    return time.thread_time() - began


def figures(options: Options) -> list[Figure]:
    watch = Stopwatch()
    files = {codec: files_of(options, codec) for codec in ("jpeg", "webp")}
    found: dict[str, list[float]] = {codec: [] for codec in files}
    for _ in range(options.rounds + 1):
        for codec, datas in files.items():
            found[codec].append(seconds(datas))
    means = {codec: statistics.mean(each[1:]) for codec, each in found.items()}  # the first warms
    ours = means["webp"] / means["jpeg"]
    size = {codec: sum(map(len, datas)) / len(datas) for codec, datas in files.items()}
    why = ("penstock decodes JPEG with its own vector code, and WebP with libwebp"
           if ours > PUBLISHED else "")
    note = (f"n = {options.rounds}; CPU time of an image: " + ", ".join(
        f"{codec} {1000 * means[codec] / COUNT:.2f} ms ({size[codec] / 1000:.0f} kB)"
        for codec in means))
    return [Figure(WHAT, f"{times(PUBLISHED)} (1,929 / 705 images/s)", times(ours),
                   ours / PUBLISHED, False, note, COMMAND, watch.lap(), why, True)]
