#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The accelerator utilization that DLIO reports, with its PyTorch loader and with penstock.

    build/venv/bin/python bench/dlio_speed.py [--rounds N] [--epochs N] [--photos DIR]

The workload is resnet50_h100 with JPEG files: batches of 50, two threads, a simulated step of 0.1 s
(docs/how-to/dlio.md). The loaders take turns; a figure is the median of the rounds, with the lowest
and the highest. `penstock-lab setup dlio` installs DLIO. Writes build/bench/dlio.md.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from common import places, say
from penstock.lab.loaders import environments, report

BATCH, STEP_S = 50, 0.1
LOADERS = {"PyTorch loader of DLIO": [], "penstock": [
    "++workload.reader.data_loader_classname=penstock.lab.dlio.PenstockDataLoader",
    "++workload.reader.data_loader_sampler=iterative"]}
FIGURES = {"AU %": "train_au_percentage", "samples/s": "train_throughput_samples_per_second"}


def prepare(folder, photos):
    """The files where DLIO expects them, and a pack of them; how many there are."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("train", "valid"):
        (folder / name).mkdir(parents=True)
    files = places.photo_files(photos)
    for number, file in enumerate(files):
        (folder / "train" / f"img_{number:05}.jpeg").symlink_to(file.resolve())
    subprocess.run([places.BUILD / "penstock", "pack", photos, "-o", folder / "photos.pen"],
                   check=True, stdout=subprocess.DEVNULL)
    return len(files)


def turn(python, folder, count, loader, options):
    """{figure: its value} of one run of DLIO."""
    settings = {"framework": "pytorch", "reader.data_loader": "pytorch", "dataset.format": "jpeg",
                "dataset.data_folder": folder, "dataset.num_files_train": count,
                "dataset.num_samples_per_file": 1, "reader.batch_size": BATCH,
                "reader.read_threads": 2, "train.computation_time": STEP_S,
                "train.epochs": options.epochs}
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run(
        [python, "-m", "dlio_benchmark.main", "workload=resnet50_h100", f"hydra.run.dir={out}",
         *(f"++workload.{key}={value}" for key, value in settings.items()), *LOADERS[loader]],
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
        env={**os.environ, "PENSTOCK_DLIO_PACK": str(folder / "photos.pen"),
             "PYTHONPATH": str(places.BUILD / "python"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    if done.returncode:
        sys.exit(f"{loader}: DLIO failed:\n{done.stdout[-2000:]}")
    metric = json.loads((out / "summary.json").read_text(encoding="utf-8"))["metric"]
    return {figure: statistics.mean(metric[key]) for figure, key in FIGURES.items()}


def table(found):
    rows = [["loader", *(f"{figure} (min-max)" for figure in FIGURES)]]
    for loader, turns in found.items():
        values = [[one[figure] for one in turns] for figure in FIGURES]
        rows.append([loader, *(f"{statistics.median(some):.1f} ({min(some):.1f}-{max(some):.1f})"
                               for some in values)])
    return report.table(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    options = parser.parse_args()
    why = environments.setup("dlio")
    if why:
        sys.exit(f"DLIO is not here: {why}")
    python, folder = environments.python_of("dlio"), places.WORK / "dlio"
    count, found = prepare(folder, options.photos), {loader: [] for loader in LOADERS}
    for number in range(options.rounds):
        for loader, turns in found.items():
            turns.append(turn(python, folder, count, loader, options))
        say(f"  round {number + 1} of {options.rounds}")
    (places.WORK / "dlio.md").write_text(table(found), encoding="utf-8")
    say("\n" + table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
