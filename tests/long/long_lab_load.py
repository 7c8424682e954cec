# SPDX-License-Identifier: Apache-2.0
"""A comparison of real loaders that is killed with -9 at random moments and continued.

In the end every cell has one turn for each round, each of which delivered every sample once, and no
process of a loader is left. Loaders that cannot run here are absent, and stay so.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
from _program import BUILD, Sweep, scaled, scratch
from PIL import Image

KILLS = scaled(20, 2)
ROUNDS = scaled(7, 2)
LOADERS = "penstock,dataloader-pil,synthetic,mosaic"
LIMIT_S = 600


def pictures(folder):
    rng = np.random.default_rng(5)
    folder.mkdir()
    for number in range(48):
        small = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        size = (160 + number, 120)
        Image.fromarray(small).resize(size).save(folder / f"{number:02}.jpg", quality=90)


def words(top):
    return ["load", str(top / "photos"), "--loaders", LOADERS, "--threads", "1,2", "--rounds",
            str(ROUNDS), "--seconds", "0.2", "--batch", "8", "--size", "64", "--short", "72",
            "--consumer", "1", "--out", str(top / "lab"), "--name", "x"]


def start(top, arguments):
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python"),
           "PENSTOCK_LAB_HOME": str(top / "home")}
    return subprocess.Popen([sys.executable, "-m", "penstock.lab", *arguments], env=env, cwd=top,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def left(top):
    """Processes that were started for this comparison."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(top / "home").encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


def lines_of(top):
    path = top / "lab" / "load" / "x" / "report.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


def kill_once(top, dice, arguments):
    """When it has written up to five lines, or while it prepares."""
    until, process = len(lines_of(top)) + dice.randrange(6), start(top, arguments)
    end = time.monotonic() + LIMIT_S
    while len(lines_of(top)) < until and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(dice.uniform(0, 0.5))
    process.send_signal(signal.SIGKILL)
    process.communicate()


def nothing_left(top, seconds):
    end = time.monotonic() + seconds
    while left(top) and time.monotonic() < end:
        time.sleep(0.2)
    return not left(top)


def killed(top, dice):
    sweep = Sweep("lab load kills")
    for number in range(KILLS):
        begun = len(lines_of(top)) > 1 and number % 2
        kill_once(top, dice, ["resume", str(top / "lab/load/x")] if begun else words(top))
        sweep.n += 1
        if not nothing_left(top, 60):
            sweep.complain(f"kill {number}: processes {left(top)} are left")
    sweep.end(f"{sweep.n} comparisons killed; {len(lines_of(top))} lines are in the report")


def continued(top):
    sweep = Sweep("lab load continued")
    process = start(top, words(top))
    out, _ = process.communicate(timeout=LIMIT_S)
    if process.returncode or "| penstock |" not in out:
        sweep.complain(f"exit code {process.returncode}: {out[-300:]}")
    lines = lines_of(top)
    turns = [line for line in lines if line["kind"] == "turn"]
    absent = {json.dumps(line["cell"]) for line in lines if line["kind"] == "absent"}
    found = sorted((json.dumps(line["cell"]), line["round"]) for line in turns)
    cells = {json.dumps(line["cell"]) for line in lines if "cell" in line} - absent
    if found != sorted((cell, number) for cell in cells for number in range(ROUNDS)):
        sweep.complain(f"expected {ROUNDS} turns of {len(cells)} cells, found {found}")
    if len(cells | absent) != 2 * len(LOADERS.split(",")):
        sweep.complain(f"cells {cells}, absent {absent}")
    for line in turns:
        sweep.n += 1
        if line["missing"] + line["again"] + line["strange"] or line["samples"] % 48:
            sweep.complain(f"samples are lost or delivered twice: {line}")
    sweep.end(f"{sweep.n} turns of {len(cells)} cells, {len(absent)} cells absent")


def main():
    with scratch() as folder:
        top = pathlib.Path(folder)
        pictures(top / "photos")
        killed(top, random.Random(11))
        continued(top)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
