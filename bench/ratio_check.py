#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The short form of the comparison, for CI: ratios that must not fall under their floors.

    build/venv/bin/python bench/ratio_check.py [--photos DIR] [--count N] [--rounds N] [--seconds S]
                                             [--calibrate]

Measures penstock, penstock with AVX2, and libjpeg-turbo that decodes whole images, all in two
threads, in interleaved turns, by penstock-lab load. Without --photos it draws pictures that are
about as hard to decode as photographs. bench/floors.toml has what a quiet machine reaches, and
common/floors.py the share of it that is the floor. Ends with 1 when a ratio is under its floor
twice; ratios, not speeds, so that the machine matters little.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from common import floors, places
from penstock.lab.experiment import machine, parameters, sweep
from penstock.lab.experiment.progress import Progress
from penstock.lab.experiment.report import Report
from penstock.lab.loaders import report
from penstock.lab.loaders.question import Load, Parameters

SIDES = (500, 375)


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
    done = subprocess.run([places.BUILD / "penstock", "--version", "--json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["tier"]


def parameters_of(rows, folder, files, options):
    names = dict.fromkeys(name for row in rows for name in (row["of"], row["against"]))
    return Parameters(sources=(str(folder),), loaders=tuple(names), batch=min(50, len(files)),
                      rounds=options.rounds, seconds=options.seconds, count=options.count,
                      title="floors", work=str(places.WORK))


def measured(chosen):
    """The section of a run whose report is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        head = {"question": "load", "name": "floors", "parameters": parameters.to_dict(chosen),
                "machine": machine.describe()}
        with Report.create(folder, head) as kept:
            sweep.run(Load(chosen, pathlib.Path(folder)), kept, chosen.rounds, Progress(0, 0))
            return report.sections(kept.lines)[0]


def strange(found):
    """Speed by other pixels, or by leaving samples out, does not count: how many did that."""
    count = 0
    for name, figure in found.items():
        pixels = figure["check"].get("mean", "not checked")
        if name.startswith("penstock") and (pixels != 0 or figure["exactly_once"] != "yes"):
            print(f"{name}: pixels off by {pixels}, each sample once: {figure['exactly_once']}")
            count += 1
    return count


class Measure:
    """Runs the loaders of some rows; `strange` counts what is wrong with their samples."""

    def __init__(self, options):
        self.options, self.strange = options, 0
        self.folder = options.photos or drawn(options.count)
        self.files = places.photo_files(self.folder, options.count)
        if not self.files:
            sys.exit(f"no photographs in {options.photos}")

    def __call__(self, rows):
        found = measured(parameters_of(rows, self.folder, self.files, self.options)).found
        self.strange += strange(found)
        return [report.comparison(found, row["of"], row["against"]) for row in rows]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--calibrate", action="store_true",
                        help="print the figures for floors.toml; use it on a quiet machine")
    options = parser.parse_args()
    here = tier()
    rows = [row for row in floors.rows("floor") if row.get("tier", here) == here]
    judge = floors.calibrate if options.calibrate else floors.check
    measure = Measure(options)
    short = judge(rows, measure, "photos" if options.photos else "drawn")
    return 1 if short or measure.strange else 0


if __name__ == "__main__":
    sys.exit(main())
