#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large photographs: decoded at their size, and with `decode shrink=auto`; one table.

    build/venv/bin/python bench/large_images.py [--quick] [--photos DIR] [--old PROGRAM]

The images are photographs side by side, 4:3, 1,000 to 4,000 pixels wide. Every rate is the median
of rounds of `penstock doctor`, RandomResizedCrop 224 + flip, u8; the cases take turns. --old adds
the rate of another build of the program, decoded at full size. The mean difference is that of all
pixels of one epoch with the same random crops, in steps of 1/255. The packs stay in
build/bench/packs. Writes build/bench/large.jsonl and large.md.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import numpy
from common import places, say
from common.run import Run, penstock
from penstock.lab.growth.question import PIPELINE as TRAIN
from penstock.lab.loaders import report

SHRINK = TRAIN.replace("decode", "decode shrink=auto")
FULL = {"side_images": 60, "sides": (1000, 1500, 2000, 2500, 3000, 4000)}
QUICK = {"side_images": 8, "sides": (1000, 2500)}


def rate(program, pack, pipeline, options):
    command = [program, "doctor", pack, "--threads", 2, "--batch", 16, "--seconds", options.seconds,
               "--pipeline", pipeline, "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["samples_per_second"]


def pixels(pack, pipeline):
    with penstock.Loader(penstock.open(pack), 4, shuffle=True, seed=1, pipeline=pipeline,
                         output="numpy") as loader:
        for batch in loader:
            yield batch.image.astype(numpy.int16)


def difference(pack):
    """The mean of the absolute differences."""
    total = count = 0
    for full, shrunk in zip(pixels(pack, TRAIN), pixels(pack, SHRINK), strict=True):
        total += int(numpy.abs(full - shrunk).sum())
        count += full.size
    return total / count


def measured(packs, options):
    program = places.BUILD / "penstock"
    cases = {"full size": (program, TRAIN), "shrink=auto": (program, SHRINK)}
    if options.old:
        cases = {"before": (options.old, TRAIN), **cases}
    found = {(side, name): [] for side in packs for name in cases}
    for number in range(options.rounds):
        for side, pack in packs.items():
            for name, (path, pipeline) in cases.items():
                found[side, name].append(rate(path, pack, pipeline, options))
        say(f"  round {number + 1} of {options.rounds}")
    return [{"kind": "large", "side": side, "difference": difference(pack),
             **{name: statistics.median(found[side, name]) for name in cases}}
            for side, pack in packs.items()]


def table(rows):
    names = [name for name in ("before", "full size", "shrink=auto") if name in rows[0]]
    lines = [["side", *[f"{name}, images/s" for name in names], "gain", "mean difference"]]
    lines += [[f"{row['side']:,}", *[f"{row[name]:,.0f}" for name in names],
               f"{row['shrink=auto'] / row['full size']:.2f}", f"{row['difference']:.2f}"]
              for row in rows]
    return report.table(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=pathlib.Path, metavar="PROGRAM", help="another build")
    run = Run(parser, FULL, QUICK)
    rows = measured({side: run.packs.of_side(side, run.sizes["side_images"])
                     for side in run.sizes["sides"]}, run.options)
    run.write("large", rows, table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
