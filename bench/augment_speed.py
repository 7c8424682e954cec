#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Augmentations: CPU time per image of 224 x 224 pixels, beside other libraries; two tables.

    build/venv/bin/python bench/augment_speed.py [--rounds N] [--photos DIR] [--only NAME,...]

penstock: the CPU time of a sample with the operation, less that of the same loader without it, with
one thread and a pack of raw pixels (`penstock doctor`). The others call their operation on images
in memory, with one thread: Pillow and torchvision on PIL images (first table), OpenCV,
albumentations and DALI on arrays (second table). DALI runs a pipeline of batches, less the same one
without the operation. Medians of rounds in which all take turns. Notes below the tables state what
differs. The environments of the others are made in build/peers (`penstock-lab setup augment dali`).
Writes build/bench/augment.jsonl and augment.md.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy
from augment.cases import CASES
from common import places, say
from penstock.lab.loaders import environments, report
from PIL import Image

SIDE, IMAGES = 224, 64
LIBRARIES = {"pillow": "augment", "torchvision": "augment", "opencv": "augment",
             "albumentations": "augment", "dali": "dali"}  # and their environments
TABLES = ("pillow", "torchvision"), ("opencv", "albumentations", "dali")
PENSTOCK = places.BUILD / "penstock"


def crop(file):
    with Image.open(file) as picture:
        picture = picture.convert("RGB")
        side = min(picture.size)
        return picture.resize((SIDE, SIDE), box=(0, 0, side, side))


def inputs(folder, photos):
    """The same images as an array, and as a pack of raw pixels."""
    shutil.rmtree(folder, ignore_errors=True)
    pictures = [crop(file) for file in places.photo_files(photos, IMAGES)]
    (folder / "png" / "all").mkdir(parents=True)
    numpy.save(folder / "images.npy", numpy.stack([numpy.asarray(p) for p in pictures]))
    for i, picture in enumerate(pictures):
        picture.save(folder / "png" / "all" / f"{i:03}.png")
    pack = folder / "raw.pen"
    subprocess.run([PENSTOCK, "pack", folder / "png", "-o", pack, "--mode", "raw"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "images.npy", pack


def own_ms(pack, operation):
    pipeline = " | ".join(filter(None, ("decode", f"center_crop {SIDE}", operation, "tensor u8")))
    done = subprocess.run(
        [PENSTOCK, "doctor", pack, "--threads", "1", "--batch", "16", "--seconds", "1",
         "--pipeline", pipeline, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["cpu_seconds_per_1000_samples"]


def own_side(pack, names):
    nothing = own_ms(pack, "")
    return {name: own_ms(pack, CASES[name]) - nothing for name in names}


def other_side(python, name, images):
    done = subprocess.run([python, places.BENCH / "augment" / "side.py", name, images], check=False,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")  # else stderr has warnings of the libraries
    return json.loads(done.stdout)


def measured(options, images, pack, pythons):
    found, notes = {}, {}
    for number in range(options.rounds):
        sides = {"penstock": own_side(pack, options.only)}
        for name, python in pythons.items():
            answer = other_side(python, name, images)
            sides[name], notes[name] = answer["ms"], answer["notes"]
        for side, times in sides.items():
            for case, ms in times.items():
                found.setdefault((case, side), []).append(ms)
        say(f"  round {number + 1} of {options.rounds}")
    return [{"kind": "augment", "operation": case, "side": side, "ms": statistics.median(times),
             "least": min(times), "most": max(times), "note": notes.get(side, {}).get(case, "")}
            for (case, side), times in found.items() if case in options.only]


def table(rows, names, libraries):
    ms = {(row["operation"], row["side"]): row["ms"] for row in rows}
    lines = [["operation, ms", "penstock", *libraries]]
    for name in names:
        cells = [ms.get((name, side)) for side in ("penstock", *libraries)]
        if any(cell is not None for cell in cells[1:]):
            lines.append([name, *("" if cell is None else f"{cell:.3f}" for cell in cells)])
    return report.table(lines)


def text_of(rows, names):
    alike = {}
    for row in rows:
        if row["note"]:
            alike.setdefault((row["side"], row["note"]), []).append(row["operation"])
    notes = [f"- {side}, {', '.join(cases)}: {note}" for (side, note), cases in alike.items()]
    tables = [table(rows, names, libraries).strip() for libraries in TABLES]
    return "\n\n".join([*tables, "\n".join(notes)]).strip()


def interpreters():
    """Of the libraries that are here; why the others are not goes to stderr."""
    reasons = {name: environments.setup(name) for name in sorted(set(LIBRARIES.values()))}
    for name, why in reasons.items():
        if why:
            print(f"the environment {name} is not here: {why}", file=sys.stderr)
    return {library: environments.python_of(name) for library, name in LIBRARIES.items()
            if not reasons[name]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES),
                        help="names of operations, separated by commas")
    return parser.parse_args()


def main():
    options = arguments()
    pythons = interpreters()
    images, pack = inputs(places.WORK / "augment", options.photos)
    rows = measured(options, images, pack, pythons)
    text = text_of(rows, options.only)
    (places.WORK / "augment.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [places.machine(), *rows]), encoding="utf-8")
    (places.WORK / "augment.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
