#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of a LeRobot dataset in random order, with windows: penstock against LeRobotDataset.

    build/venv/bin/python bench/lerobot_speed.py [--videos DIR] [--rounds N] [--loaders A,B] [...]

The lerobot package writes a dataset of two cameras (its default codec, a key frame every 2 frames),
and `penstock index` a pack over it. A sample has two images of one camera, one of the other, a
state and 50 actions; images are float32 in [0, 1]. LeRobotDataset is read by a DataLoader with as
many worker processes as penstock has threads. penstock@store reads a copy of the pack from a
simulated object store. The loaders take turns; a turn of penstock is an epoch, one of the others
--samples samples. The dataset stays in build/bench/robot. Writes build/bench/lerobot.jsonl and
lerobot.md. Needs penstock-lab setup lerobot.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from common import places, say
from penstock import lerobot
from penstock.lab import program, shapes
from penstock.lab.errors import Absent
from penstock.lab.experiment import inputs
from penstock.lab.loaders import environments, report
from penstock.lab.loaders.workers import Worker, python_for

HERE = places.BENCH / "robot"
FPS, STORE, PREPARE_SECONDS = 30, "store=110ms", 300
MORE = 192  # requests at a time
DELTAS = {"observation.images.top": [-0.1, 0.0], "observation.images.wrist": [0.0],
          "observation.state": [0.0], "action": [i / FPS for i in range(50)]}
LOADERS = {
    "penstock": {"title": "penstock, videos in place", "module": "ours", "reads": "robot.pen"},
    f"penstock@{STORE}": {"title": f"penstock, copied pack, simulated {STORE}", "module": "ours",
                          "reads": "copy.pen", "storage": STORE},
    f"penstock-{MORE}@{STORE}": {"title": f"the same, {MORE} requests at a time", "module": "ours",
                                 "reads": "copy.pen", "storage": STORE, "requests": MORE},
    "lerobot": {"title": "DataLoader + LeRobotDataset, torchcodec (its default)",
                "module": "theirs", "reads": "robot", "backend": "torchcodec"},
    "lerobot-pyav": {"title": "DataLoader + LeRobotDataset, pyav", "module": "theirs",
                     "reads": "robot", "backend": "pyav"},
}
AIMS = [(f"penstock@{STORE}", "penstock", 0.95), (f"penstock-{MORE}@{STORE}", "penstock", 0.95)]


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--videos", type=pathlib.Path, help="folder of videos whose frames are the images")
    add("--rounds", type=int, default=7)
    add("--loaders", default=",".join(LOADERS))
    add("--samples", type=int, default=1024, help="of a turn of LeRobotDataset")
    add("--batch", type=int, default=64)
    add("--threads", type=int, default=2)
    add("--size", default="240x320", help="of the images, HEIGHTxWIDTH")
    add("--episodes", type=int, default=32)
    add("--frames", type=int, default=300, help="of an episode")
    add("--codec", default="libsvtav1", help="as LeRobot names it: libsvtav1 or h264")
    options = parser.parse_args()
    options.loaders = options.loaders.split(",")
    for name in options.loaders:
        if name not in LOADERS:
            parser.error(f"--loaders: expected {', '.join(LOADERS)}, found '{name}'")
    return options


# ---- the dataset and its packs


def video_files(folder):
    return [str(file) for file in sorted(folder.iterdir()) if file.is_file()] if folder else []


def dataset(options):
    """The folder of the dataset and of its packs; made once."""
    source = inputs.describe(str(options.videos))["id"][:12] if options.videos else "pattern"
    name = f"{options.codec}-{options.size}-{options.episodes}x{options.frames}-{source}"
    folder = places.WORK / "robot" / name
    if (folder / "copy.pen" / "manifest").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"  writing {options.episodes} episodes of {options.frames} frames")
    task = {"folder": str(folder / "robot"), "videos": video_files(options.videos),
            "size": list(map(int, options.size.split("x"))), "episodes": options.episodes,
            "frames": options.frames, "codec": options.codec}
    with open(folder / "write.log", "wb") as log:
        done = subprocess.run([environments.python_of("lerobot"), "-W", "ignore",
                               HERE / "write.py", json.dumps(task)], check=False, stdout=log,
                              stderr=log)
    if done.returncode:
        sys.exit(f"lerobot could not write the dataset: see {log.name}")
    lerobot.index(folder / "robot", folder / "robot.pen")
    program.output("copy", folder / "robot.pen", folder / "copy.pen")
    return folder


def stored_mb(folder):
    return sum(file.stat().st_size for file in (folder / "robot").rglob("*.mp4")) / 1e6


# ---- turns


class Arm:
    """A loader in a process of its own, for all turns."""

    def __init__(self, name, folder, options, stack):
        loader = {"storage": "warm", "backend": None, "requests": None, **LOADERS[name]}
        reads = folder / loader["reads"]
        place = stack.enter_context(
            shapes.parse(loader["storage"]).apply([reads, folder / "write.log"]))
        remote = loader["storage"] != "warm"
        spec = {"module": loader["module"], "packages": [], "variables": place.environment,
                "environment": "lerobot" if loader["module"] == "theirs" else None}
        self.name, self.title = name, loader["title"]
        self.worker = Worker(name, spec, python_for(spec), folder / f"{name}.log",
                             HERE / "turn.py", place.words)
        stack.callback(self.worker.stop)
        task = {"address": place.address(reads) if remote else str(reads), "deltas": DELTAS,
                "backend": loader["backend"], "requests": loader["requests"],
                "batch": options.batch, "threads": options.threads, "samples": options.samples,
                "size": list(map(int, options.size.split("x"))), "seed": 1}
        self.versions = self.worker.ask(PREPARE_SECONDS, do="open", task=task)["versions"]

    def turn(self, number):
        found = self.worker.turn(epoch=number + 1)
        return {"kind": "turn", "loader": self.name, "round": number, **found}


def open_arms(options, folder, stack):
    arms = []
    for name in options.loaders:
        try:
            arms.append(Arm(name, folder, options, stack))
        except Absent as why:
            say(f"  {name}: absent: {why}")
    return arms


def measured(arms, rounds):
    """Lines of all turns; the first round warms up."""
    lines = []
    for number in range(-1, rounds):
        turns = [arm.turn(number) for arm in (arms if number % 2 else reversed(arms))]
        shown = ", ".join(f"{turn['loader']} {turn['samples'] / turn['seconds']:.0f}/s"
                          for turn in turns)
        say(f"  round {number + 1} of {rounds}: {shown}")
        sizes = [turn.pop("sizes") for turn in turns]  # LeRobot has no dimension for one image
        if any(size != sizes[0] for size in sizes):
            raise ValueError(f"the loaders return samples of different sizes: {sizes}")
        lines += turns if number >= 0 else []
    return lines


# ---- tables


def figures_of(arms, lines):
    found = {}
    for arm in arms:
        turns = [line for line in lines if line["loader"] == arm.name]
        found[arm.name] = {
            "title": arm.title, "rates": [turn["samples"] / turn["seconds"] for turn in turns],
            "images": statistics.median(turn["frames"] / turn["seconds"] for turn in turns),
            "cpu": statistics.median(1000 * turn["cpu"] / turn["samples"] for turn in turns)}
    return found


def speed_table(found):
    rows = [["loader", "samples/s (min-max)", "images/s", "speedup of penstock (min-max)",
             "CPU ms per sample"]]
    for name, figure in found.items():
        rates, result = figure["rates"], report.comparison(found, "penstock", name)
        rows.append([
            figure["title"],
            f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})",
            f"{figure['images']:,.0f}",
            "-" if name == "penstock" or result is None else report.spread(result),
            f"{figure['cpu']:.2f}"])
    return report.table(rows)


def main():
    options, here = options_of(), places.machine()
    try:
        folder = dataset(options)
    except Absent as why:
        print(f"lerobot: {why}")
        return 77
    with contextlib.ExitStack() as stack:
        arms = open_arms(options, folder, stack)
        lines = measured(arms, options.rounds)
    found = figures_of(arms, lines)
    versions = {name: text for arm in arms for name, text in arm.versions.items()}
    text = "\n".join([
        f"{report.machine_text(here)}; {options.episodes} episodes of {options.frames} frames, "
        f"{options.size}, {options.codec}, {stored_mb(folder):.0f} MB; {options.threads} threads, "
        f"{options.rounds} rounds, medians\n",
        speed_table(found), report.wanted_table(AIMS, found),
        ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + "\n"])
    head = {"kind": "parameters", "machine": here, "versions": versions,
            **{key: str(value) for key, value in vars(options).items()}}
    report.write(places.WORK / "lerobot.jsonl", [head, *lines])
    (places.WORK / "lerobot.md").write_text(text, encoding="utf-8")
    say("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
