#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clips: how much room they take, how fast they come, and what a training loop waits for.

    clips_speed.py make            cut the set, pack it, gulp it; the other verbs do so when needed
    clips_speed.py size            packed size over source size: payload, index, slack
    clips_speed.py fetch           50 batches of [10, 3, 18, 84, 84], stride 2, centre crop 84, from
                                   the real disk, warm
    clips_speed.py fetch --slow    the same from a disk that is simulated: 6.8 ms for every open and
                                   every read that is not contiguous, one after the other, no page
                                   cache (penstock-lab shapes, by FUSE; needs libfuse3-dev, fuse3)
    clips_speed.py train [--slow]  an epoch, shuffled, with a consumer that takes 0.2 s for a batch
    clips_speed.py table NAME...

The set is like Jester's: 2,000 clips of 37 frames of 176x100 pixels, JPEG files in folders and a
list, cut out of a few real videos (../shared/data/videos, else ffmpeg's test pictures) at random
times and boxes (clips/cut.py). The clips that fetch takes are there as H.264 videos too, for the
loaders that read those.

Loaders take turns, there and back again; a turn is a process of its own, and its clock starts when
all is imported. The others have 5 worker processes, penstock has 2 threads. A ratio is that of two
medians, with the lowest and highest of one round behind it. The others are installed by
`penstock-lab setup dataloader gulpio2 decord torchcodec`; who is absent is named.

Written to build/bench: clips-NAME.jsonl (first line: parameters, machine), .md. fetch ends with 1
when an aim is not reached.
"""

import argparse
import pathlib
import shlex
import sys

from clips import disk, rounds, tables
from clips.stock import Stock
from common import places, say
from penstock.lab.loaders import environments, report

FRAMES, STRIDE, SIZE, BATCH, WORKERS, THREADS, SEEK_MS = 18, 2, 84, 10, 5, 2, 6.8
STEP_SECONDS = 0.2
WARM_AIMS, SLOW_AIMS = {"jpeg": 3.5, "gulpio2": 2.0}, {"jpeg": 10.0}


def default_videos():
    return places.ROOT.parent / "shared" / "data" / "videos"


def head_of(what, title, options, **more):
    return {"kind": "parameters", "name": name_of(what, options), "what": what, "title": title,
            "machine": places.machine(), "clips": options.clips, "batch": BATCH,
            "command": shlex.join(["bench/clips_speed.py", *sys.argv[1:]]), "wanted": {}, **more}


def name_of(what, options):
    slow = "-slow" if getattr(options, "slow", False) else ""
    return f"clips-{getattr(options, 'name', None) or what + slow}"


def keep(lines):
    out = places.WORK / lines[0]["name"]
    report.write(out.with_suffix(".jsonl"), lines)
    text = tables.markdown(lines)
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    say("\n" + text)


def place_of(stock, options):
    return disk.Slow(stock.folder, SEEK_MS) if options.slow else disk.Here(stock.folder)


def measure(head, stock, options, task):
    names = options.loaders.split(",") if options.loaders else head["loaders"]
    for name in names:
        if name not in rounds.known():
            raise ValueError(f"no loader {name}; there are {', '.join(rounds.known())}")
    task = {"frames": FRAMES, "stride": STRIDE, "size": SIZE, "batch": BATCH, "workers": WORKERS,
            "threads": THREADS, "centre": False, **task}
    stock.warm()
    with place_of(stock, options) as place:
        lines = [head, *rounds.Rounds(names, place, task, options).all()]
    keep(lines)
    return lines


def where(options):
    return f"simulated disk, {SEEK_MS} ms a seek" if options.slow else "real disk, warm"


def do_make(options):
    Stock(options).make()
    return 0


def do_size(options):
    stock = Stock(options)
    stock.make()
    title = f"{options.clips:,} clips of 37 frames, 176x100: room on disk"
    keep([head_of("size", title, options), *[{"kind": "size", **row} for row in stock.sizes()]])
    return 0


def do_fetch(options):
    stock = Stock(options)
    stock.make()
    batches = options.fetched // BATCH
    title = f"{batches} batches of [{BATCH}, 3, {FRAMES}, {SIZE}, {SIZE}], {where(options)}"
    head = head_of("fetch", title, options, place="slow" if options.slow else "disk",
                   rounds=options.rounds, loaders=list(rounds.known()),
                   wanted=SLOW_AIMS if options.slow else WARM_AIMS)
    task = {"do": "fetch", "batches": batches, "shuffle": False, "clips": options.fetched}
    lines = measure(head, stock, options, task)
    found, _ = tables.results(lines)
    return 0 if all(row[-1] for row in tables.verdicts(head, found)) else 1


def do_train(options):
    stock = Stock(options)
    stock.make()
    clips = options.epoch or options.clips
    title = (f"An epoch of {clips:,} clips, {BATCH} in a batch, {STEP_SECONDS} s for each, "
             f"{where(options)}")
    head = head_of("train", title, options, place="slow" if options.slow else "disk",
                   rounds=options.rounds, loaders=["penstock", "jpeg"])
    measure(head, stock, options, {"do": "train", "step": STEP_SECONDS, "shuffle": True,
                                   "clips": clips})
    return 0


def do_table(options):
    for name in options.names:
        print(tables.markdown(report.read(places.WORK / f"clips-{name}.jsonl")))
    return 0


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("make", "size", "fetch", "train"):
        verb = verbs.add_parser(name)
        verb.add_argument("--clips", type=int, default=2000, help="in the set (2,000)")
        verb.add_argument("--fetched", type=int, default=500, help="clips that fetch takes (500)")
        verb.add_argument("--videos", type=pathlib.Path, default=default_videos(),
                          help="folder of videos that clips are cut from")
        verb.add_argument("--python", type=pathlib.Path, default=places.VENV_PYTHON,
                          help="with torch, NumPy and Pillow, for penstock (build/venv)")
        if name in ("fetch", "train"):
            verb.add_argument("--slow", action="store_true", help="from a simulated disk")
            verb.add_argument("--rounds", type=int, default=3)
            verb.add_argument("--loaders", help="only these, divided by commas")
            verb.add_argument("--name", help="of what is written; the verb when not given")
        if name == "train":
            verb.add_argument("--epoch", type=int, help="clips in the epoch; all of the set")
    verb = verbs.add_parser("table")
    verb.add_argument("names", nargs="+", metavar="NAME")
    return parser.parse_args()


def main():
    options = options_of()
    verbs = {"make": do_make, "size": do_size, "fetch": do_fetch, "train": do_train,
             "table": do_table}
    try:
        return verbs[options.verb](options)
    except (ValueError, environments.Absent) as error:
        sys.exit(f"clips_speed.py: {error}")


if __name__ == "__main__":
    sys.exit(main())
