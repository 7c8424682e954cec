#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The short form of the comparison, for CI: ratios that must not fall under their floors.

    build/venv/bin/python bench/ratio_check.py [--photos DIR] [--count N] [--rounds N] [--seconds S]

Measures penstock, penstock with AVX2, penstock from a keep pack, and libjpeg-turbo that decodes
whole images, all in two threads, in interleaved turns, as bench/peers.py does. Without --photos it
draws pictures that are about as hard to decode as photographs. The floors are in bench/floors.toml.
Ends with 1 when a ratio is under its floor; ratios, not speeds, so that the machine matters little.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import tomllib
from compare import places, report, scenario
from compare.rounds import Run, Set

SIDES = (500, 375)


def floors(kind="floor"):
    return tomllib.loads((places.BENCH / "floors.toml").read_text(encoding="utf-8"))[kind]


def drawn_picture(rng):
    """Noise of all scales, the larger the stronger, as in nature, and edges."""
    import numpy as np
    from PIL import Image

    width, height = SIDES if rng.random() < 0.75 else SIDES[::-1]
    out = np.zeros((height, width, 3))
    for octave in range(2, 9):
        cells = 2**octave
        small = rng.normal(0, 1, (cells, cells, 3)).astype(np.float32)
        small[..., 1:] = 0.8 * small[..., :1] + 0.2 * small[..., 1:]  # mostly grey
        for channel in range(3):
            plane = Image.fromarray(small[..., channel]).resize((width, height))
            out[..., channel] += np.asarray(plane) * 90 / 1.6**octave
    y, x = np.mgrid[:height, :width]
    for _ in range(6):
        a, b, c = rng.normal(0, 1, 2).tolist() + [rng.uniform(-150, 150)]
        out[(x - width / 2) * a + (y - height / 2) * b > c] += rng.normal(0, 25, 3)
    return Image.fromarray(np.clip(out + 118, 0, 255).astype(np.uint8))


def drawn(count):
    """A folder of `count` pictures: the same ones every time."""
    import numpy as np

    folder = places.WORK / f"drawn-{count}"
    if not (folder / "a" / f"{count - 1:04}.jpg").exists():
        (folder / "a").mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        for number in range(count):
            drawn_picture(rng).save(folder / "a" / f"{number:04}.jpg", quality=92)
    return folder


def tier():
    done = subprocess.run([places.BUILD / "penstock", "probe", "--json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["tier"]


def setting_of(rows, batch):
    names = dict.fromkeys(name for row in rows for name in (row["of"], row["against"]))
    return {**scenario.read("train"), "title": "floors", "loaders": list(names), "wanted": [],
            "batch": batch}


def judge(rows, found, kind):
    """Prints a line for each floor; the number of those that are not held."""
    short = 0
    for row in rows:
        result = report.comparison(found, row["of"], row["against"])
        held = result is not None and result["ratio"] >= row[kind]
        short += not held
        figure = "not measured" if result is None else report.spread(result)
        print(f"{row['of']} against {row['against']}: {figure}, floor {row[kind]:.2f}"
              f"{'' if held else '  UNDER THE FLOOR: ' + row['reason']}")
    return short


def strange(found):
    """Speed by other pixels, or by leaving samples out, does not count: how many did that."""
    count = 0
    for name, figure in found.items():
        pixels = figure["check"].get("mean", "not checked")
        if name.startswith("penstock") and (pixels != 0 or figure["exactly_once"] != "yes"):
            print(f"{name}: pixels off by {pixels}, each sample once: {figure['exactly_once']}")
            count += 1
    return count


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.7)
    options = parser.parse_args()
    here = tier()
    rows = [row for row in floors() if row.get("tier", here) == here]
    files = places.photo_files(options.photos or drawn(options.count), options.count)
    if not files:
        sys.exit(f"no photographs in {options.photos}")
    setting = setting_of(rows, min(50, len(files)))
    run = Run(setting, Set(files, sys.executable), options.rounds, options.seconds)
    found, _ = report.results([{"kind": "parameters", "scenario": setting}, *run.all()])
    short = judge(rows, found, "photos" if options.photos else "drawn") + strange(found)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
