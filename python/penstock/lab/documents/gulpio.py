# SPDX-License-Identifier: Apache-2.0
"""GulpIO-benchmarks: clips as JPEG files against clips in a few large files."""

from __future__ import annotations

import contextlib
import pathlib
import random
import statistics
from collections.abc import Iterator
from typing import Any

from .. import shapes
from ..clips import sets, turns
from ..clips.files import FRAMES, HEIGHT, QUALITY, WIDTH, write_frames, write_list
from ..errors import Absent, LabError
from ..experiment import inputs
from ..shapes.shape import Place
from .figure import Figure, Options, Stopwatch, absent, times

TITLE = "GulpIO-benchmarks"
SOURCE = "https://github.com/TwentyBN/GulpIO-benchmarks"
COMMAND = "penstock-lab seeds gulpio"

CLIPS, BATCH, WORKERS, THREADS = 200, 10, 5, 2
SEEK_MS = 6.8  # 61.4 s for 9,000 files
STEP = 0.418 * BATCH / 64  # seconds of a training step there, for 64 clips
PUBLISHED = {"fetch": 61.415 / 5.916, "epoch": 9006.5 / 1062.7, "size": 30 / 37,
             "files": 0.945, "pack": 0.276, "wait": 4.622 / 0.159}
SET = (f"{CLIPS} clips of {FRAMES} frames, {WIDTH} x {HEIGHT}, cut from photographs by a moving "
       f"box; JPEG {QUALITY}")
READERS = (f"batches of [{BATCH}, 3, {turns.FRAMES}, {turns.SIZE}, {turns.SIZE}], stride "
           f"{turns.STRIDE}; DataLoader with {WORKERS} processes against penstock with {THREADS} "
           f"threads; simulated disk, {SEEK_MS} ms a seek, no page cache")


def photographs(folder: str) -> list[pathlib.Path]:
    found = sorted(path for path in pathlib.Path(folder).rglob("*")
                   if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
    if not found:
        raise LabError(f"no images in '{folder}': expected files such as CLASS/NAME.jpg")
    return found


def cut_clip(photo: pathlib.Path, number: int, out: pathlib.Path) -> None:
    """A box that moves over a photograph."""
    from PIL import Image

    draw = random.Random(number)
    image: Any = Image.open(photo).convert("RGB")
    factor = 1.3 * max(WIDTH / image.width, HEIGHT / image.height)
    image = image.resize((round(image.width * factor), round(image.height * factor)))
    ends = [(draw.uniform(0, image.width - WIDTH), draw.uniform(0, image.height - HEIGHT))
            for _ in range(2)]
    corners = ([round(a + (b - a) * i / (FRAMES - 1)) for a, b in zip(*ends)]
               for i in range(FRAMES))
    write_frames((image.crop((x, y, x + WIDTH, y + HEIGHT)) for x, y in corners), out)


def make(options: Options) -> pathlib.Path:
    """The folder with `frames` and `clips.pen`."""
    folder = options.folder(f"clips-{CLIPS}")
    if inputs.is_pack(folder / "clips.pen"):
        return folder
    options.say(f"GulpIO: making {CLIPS} clips")
    photos = photographs(options.photos)
    for number in range(CLIPS):
        cut_clip(photos[number % len(photos)], number, folder / "frames" / f"{number:06}")
    write_list(folder, [(f"{number:06}", str(number % 10)) for number in range(CLIPS)])
    sets.pack_frames(folder)
    return folder


# ---- size


def breakdown(found: dict[str, int]) -> str:
    total = found["payload"] + found["index"] + found["slack"]
    return (f"{total / 1e6:.1f} MB = payload {found['payload'] / total:.1%}, index "
            f"{found['index'] / total:.1%}, slack of blocks {found['slack'] / total:.1%}")


def size_figure(folder: pathlib.Path) -> Figure:
    """The sentence "the gulped dataset is smaller because", with figures."""
    watch = Stopwatch()
    files, pack = sets.room(folder, "frames"), sets.room(folder, "clips.pen")
    before, after = (sum(found[part] for part in ("payload", "index", "slack"))
                     for found in (files, pack))
    note = (f"{SET}. Files: {breakdown(files)}; pack: {breakdown(pack)}. The pack keeps the JPEG "
            "data; GulpIO encodes it again")
    ratio = after / before
    published = PUBLISHED["size"]
    return Figure("size on disk, packed / files", f"{published:.2f} (30 / 37 GB)", f"{ratio:.2f}",
                  ratio / published, False, note, COMMAND, watch.lap(),
                  "a pack keeps the JPEG data of the files" if ratio > published else "", True)


# ---- speed


# Why a pack gains less here.
DECODES = f"with {THREADS} threads, decoding is a limit beside the seeks; there, 6 cores decode"
Turns = dict[str, list[dict[str, Any]]]


def compare(options: Options, place: Place, **more: Any) -> Turns:
    """Turns of both, one after the other in each round."""
    found: Turns = {"pack": [], "files": []}
    task = turns.task(CLIPS, BATCH, WORKERS, THREADS, **more)
    for _ in range(options.rounds):
        for side, loader in (("pack", "penstock"), ("files", "jpeg")):
            log = options.folder("logs") / f"{loader}.log"
            found[side].append(turns.turn(loader, task, place, log))
    return found


def mean(found: list[dict[str, Any]], name: str) -> float:
    return statistics.mean(float(turn[name]) for turn in found)


def fetch_figures(found: Turns, seconds: float, checks: str) -> list[Figure]:
    files, pack = mean(found["files"], "seconds"), mean(found["pack"], "seconds")
    batches, note = CLIPS // BATCH, f"n = {len(found['pack'])}. {SET}; {READERS}. {checks}"
    published = PUBLISHED["fetch"]
    reads = {side: mean(found[side], "reads") / CLIPS for side in found}
    seeks = {side: mean(found[side], "seeks") / CLIPS for side in found}
    return [
        Figure(f"fetch, time of files / time of pack, {batches} batches",
               f"{times(published)} (61.4 / 5.9 s for 50)",
               f"{times(files / pack)} ({files:.1f} / {pack:.1f} s)", files / pack / published,
               True, note, COMMAND, seconds, DECODES if files / pack < published else ""),
        Figure("reads of a clip, files / pack", "not given",
               f"{reads['files']:.1f} / {reads['pack']:.2f}", None, True,
               f"seeks of a clip: {seeks['files']:.1f} / {seeks['pack']:.2f}; an open is one. "
               f"{turns.FRAMES} frames of {FRAMES} are used", COMMAND),
    ]


def epoch_figures(found: Turns, seconds: float, checks: str) -> list[Figure]:
    files, pack = mean(found["files"], "seconds"), mean(found["pack"], "seconds")
    shares = {side: mean(found[side], "data") / mean(found[side], "seconds") for side in found}
    note = (f"n = {len(found['pack'])}. shuffled; simulated training step of {STEP * 1000:.0f} ms "
            f"for {BATCH} clips, as 0.418 s for 64 there. {READERS}. {checks}")
    published = PUBLISHED["epoch"]
    rows = [Figure("training epoch, time of files / time of pack",
                   f"{times(published)} (9006 / 1063 s)",
                   f"{times(files / pack)} ({files:.1f} / {pack:.1f} s)",
                   files / pack / published, True, note, COMMAND, seconds,
                   DECODES if files / pack < published else "")]
    wait = {side: mean(found[side], "data") / mean(found[side], "batches") for side in found}
    many = wait["files"] / max(wait["pack"], 1e-9)
    rows.append(Figure("mean wait for a batch, files / pack",
                       f"{times(PUBLISHED['wait'])} (4.622 / 0.159 s)",
                       f"{times(many)} ({1000 * wait['files']:.0f} / {1000 * wait['pack']:.1f} ms)",
                       many / PUBLISHED["wait"], True, note, COMMAND,
                       why=DECODES if many < PUBLISHED["wait"] else ""))
    for side, name in (("files", "JPEG files"), ("pack", "pack")):
        rows.append(Figure(f"share of the epoch spent waiting for data (Data / Time), {name}",
                           f"{PUBLISHED[side]:.1%}", f"{shares[side]:.1%}",
                           shares[side] / PUBLISHED[side], True, note, COMMAND,
                           why=DECODES if side == "pack" and shares[side] > PUBLISHED[side]
                           else "", lower=side == "pack"))
    return rows


@contextlib.contextmanager
def seek_disk(folder: pathlib.Path) -> Iterator[Place]:
    paths = [folder / "list.csv", folder / "frames", folder / "clips.pen"]
    with shapes.Seeks(SEEK_MS).apply(paths) as place:
        yield place


def figures(options: Options) -> list[Figure]:
    folder = make(options)
    rows = [size_figure(folder)]
    try:
        with seek_disk(folder) as place:
            checks, watch = "; ".join(map(str, place.checks)), Stopwatch()
            options.say("GulpIO: fetching from a disk with seeks")
            found = compare(options, place)
            rows += fetch_figures(found, watch.lap(), checks)
            options.say("GulpIO: epochs from a disk with seeks")
            found = compare(options, place, shuffle=True, step=STEP)
            rows += epoch_figures(found, watch.lap(), checks)
    except Absent as reason:
        rows.append(absent("fetch and epoch on a disk with seeks", times(PUBLISHED["fetch"]),
                           reason, COMMAND))
    return rows
