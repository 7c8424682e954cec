#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large photographs: decoded at their size, and with `decode shrink=auto`; one table.

    build/venv/bin/python bench/large_images.py [--quick] [--photos DIR] [--old PROGRAM]

The images are photographs side by side, 4:3, 1,000 to 4,000 pixels wide. Every rate is the median
of rounds of `penstock bench`, RandomResizedCrop 224 + flip, u8; the cases take turns. --old adds
the rate of another build of the program, decoded at full size. The mean difference is that of all
pixels of one epoch with the same random crops, in steps of 1/255. The packs stay in
build/bench/growth-*. Writes build/bench/large.jsonl and large.md.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import numpy
from compare import places, report
from growth import Packs, package, say

FULL_SIZE = "decode | random_resized_crop 224 | hflip | tensor u8"
SHRINK = "decode shrink=auto | random_resized_crop 224 | hflip | tensor u8"
FULL = {"side_images": 60, "sides": (1000, 1500, 2000, 2500, 3000, 4000)}
QUICK = {"side_images": 8, "sides": (1000, 2500)}


def rate(program, pack, pipeline, options):
    command = [program, "bench", pack, "--threads", 2, "--batch", 16, "--seconds", options.seconds,
               "--pipeline", pipeline, "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["samples_per_second"]


def pixels(pack, pipeline):
    penstock = package()
    with penstock.Loader(penstock.open(pack), 4, shuffle=True, seed=1, pipeline=pipeline,
                         output="numpy") as loader:
        for batch in loader:
            yield batch.image.astype(numpy.int16)


def difference(pack):
    """The mean of the absolute differences."""
    total = count = 0
    for full, shrunk in zip(pixels(pack, FULL_SIZE), pixels(pack, SHRINK), strict=True):
        total += int(numpy.abs(full - shrunk).sum())
        count += full.size
    return total / count


def measured(packs, options):
    program = places.BUILD / "penstock"
    cases = {"full size": (program, FULL_SIZE), "shrink=auto": (program, SHRINK)}
    if options.old:
        cases = {"before": (options.old, FULL_SIZE), **cases}
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


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--quick", action="store_true", help="small counts, one short round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--old", type=pathlib.Path, metavar="PROGRAM", help="another build")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (1 if options.quick else 5)
    return options


def main():
    options = options_of()
    sizes = QUICK if options.quick else FULL
    packs = Packs(options.photos, sizes)
    if not packs.files:
        sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
    here = places.machine()
    rows = measured({side: packs.of_side(side) for side in sizes["sides"]}, options)
    head = {"kind": "parameters", "machine": here, "sizes": sizes, "rounds": options.rounds,
            "seconds": options.seconds}
    report.write(places.WORK / "large.jsonl", [head, *rows])
    text = (f"{here['cpu']}, {here['cores']} cores, {here['date']}, commit {here['commit']}; "
            f"medians of {options.rounds} rounds of {options.seconds} s, 2 threads\n\n"
            + table(rows) + "\n")
    (places.WORK / "large.md").write_text(text, encoding="utf-8")
    say("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
