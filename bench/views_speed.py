#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several views of an image: what they cost together, and one by one; one table.

    build/venv/bin/python bench/views_speed.py [--quick] [--photos DIR]

SimCLR has two views of 224 pixels, DINO has two of 224 pixels and eight of 96, all of them with
colors. The cost of a sample is 1 / rate of `penstock doctor` with two threads, and its CPU time,
which a busy machine disturbs less; the median of rounds in which all cases take turns. "One by one"
is the sum over loaders that have one view each. The photographs are those of --photos, and some
side by side, 2,000 pixels wide.
The packs stay in build/bench/packs.
Writes build/bench/views.jsonl and views.md.
"""

import argparse
import json
import statistics
import subprocess
import sys

from common import places, say
from common.run import Run
from penstock.lab.loaders import report

FULL = {"packs": (1000,), "sides": (2000,), "side_images": 60}
QUICK = {"packs": (100,), "sides": (), "side_images": 8}
COLORS = "hflip | color_jitter 0.4 0.4 0.4 0.1 | grayscale 0.2 | tensor u8"
SIMCLR = f"image: decode | random_resized_crop 224 | {COLORS}"
CROP = "image: decode | random_resized_crop 224 | hflip | tensor u8"
LARGE = f"image: decode | random_resized_crop 224 scale=0.4,1 | {COLORS}"
SMALL = f"image: decode | random_resized_crop 96 scale=0.05,0.4 | {COLORS}"
CASES = {
    "one view": f"view1 = {SIMCLR}",
    "two views": f"view1 = {SIMCLR}; view2 = {SIMCLR}",
    "one large": f"large1 = {LARGE}",
    "one small": f"small = {SMALL}",
    "2 + 8": f"large1 = {LARGE}; large2 = {LARGE}; small = {SMALL} | repeat 8",
    "no view": SIMCLR,
    "one crop": f"view1 = {CROP}",
    "two crops": f"view1 = {CROP}; view2 = {CROP}",
}


def cost(pack, pipeline, options):
    """Of one sample: milliseconds, and milliseconds of CPU time."""
    command = [places.BUILD / "penstock", "doctor", pack, "--threads", 2, "--batch", 16,
               "--seconds", options.seconds, "--pipeline", pipeline, "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    return 1000 / found["samples_per_second"], found["cpu_seconds_per_1000_samples"]


def measured(packs, options):
    found = {(pack, name): [] for pack in packs for name in CASES}
    for number in range(options.rounds):
        for pack, path in packs.items():
            for name, pipeline in CASES.items():
                found[pack, name].append(cost(path, pipeline, options))
        say(f"  round {number + 1} of {options.rounds}")
    return [{"kind": "views", "pack": pack, "what": what,
             **{name: statistics.median(costs[i] for costs in found[pack, name]) for name in CASES}}
            for pack in packs for i, what in enumerate(("time", "CPU time"))]


def table(rows):
    lines = [["images, measure", "views", "together, ms", "one by one, ms", "ratio"]]
    for row in rows:
        ten = 2 * row["one large"] + 8 * row["one small"]
        for name, together, parts in (("crop and flip: 2", row["two crops"], 2 * row["one crop"]),
                                      ("SimCLR: 2", row["two views"], 2 * row["one view"]),
                                      ("DINO: 2 + 8", row["2 + 8"], ten)):
            lines.append([f"{row['pack']}, {row['what']}", name, f"{together:.2f}", f"{parts:.2f}",
                          f"{together / parts:.2f}"])
    return report.table(lines)


def aims(rows):
    for row in rows:
        crops, views = row["two crops"] / row["one crop"], row["two views"] / row["one view"]
        yield (f"{row['pack']}, {row['what']}: two views cost {crops:.2f} times one view with crop "
               f"and flip, {views:.2f} times with colors too (aim: at most 1.7); one view under a "
               f"name {row['one view'] / row['no view']:.2f} times the field itself")


def main():
    run = Run(argparse.ArgumentParser(description=__doc__), FULL, QUICK)
    packs = {f"{count:,} photographs": run.packs.of_count(count) for count in run.sizes["packs"]}
    packs |= {f"{side:,} pixels wide": run.packs.of_side(side, run.sizes["side_images"])
              for side in run.sizes["sides"]}
    rows = measured(packs, run.options)
    text = table(rows) + "".join(f"\n- {line}" for line in aims(rows))
    run.write("views", rows, text, "several views, u8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
