# SPDX-License-Identifier: Apache-2.0
"""Datasets of two cameras that the lerobot package writes: every sample of an epoch equals the one
that its own reader returns. Needs ./dev lab setup lerobot."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from _package import BUILD, ROOT, Tests, penstock, scaled
from penstock import lerobot

os.environ.setdefault("PENSTOCK_LAB_HOME", str(ROOT / "build" / "peers"))

from penstock.lab.errors import Absent
from penstock.lab.loaders import environments

PLUGIN = BUILD / "video" / "libpenstock-video.so.0"
READER = pathlib.Path(__file__).with_name("_lerobot_read.py")
SIZE, FPS = (48, 64), 30
CAMERAS = ("observation.images.top", "observation.images.wrist")
DELTAS = {CAMERAS[0]: [-6, -3, 0], CAMERAS[1]: [0], "observation.state": [-1, 0],
          "action": list(range(16))}
ROWS = ("next.reward", "next.done", "timestamp", "task_index")  # one for each frame
# LeRobot's decoders convert colors by swscale's fast path, which is off by up to 3 of 255.
MOST_OFF, LEAST_APART = 3, 6
DATASETS = {
    "AV1, torchcodec": {"codec": "libsvtav1", "backend": "torchcodec", "streaming": False,
                        "episodes": scaled(200, 8), "file_mb": 0.02},
    "H.264 encoded while recording, pyav": {
        "codec": "h264", "backend": "pyav", "streaming": True, "episodes": scaled(40, 4),
        "file_mb": 0.01},
}


class Theirs:
    """The samples that LeRobot has returned, by the number of the frame in the dataset."""

    def __init__(self, python, folder, settings):
        lengths = np.random.default_rng(1).integers(5, 60, settings["episodes"]).tolist()
        task = {**settings, "folder": f"{folder}/robot", "out": f"{folder}/read", "size": SIZE,
                "lengths": lengths, "deltas": DELTAS}
        done = subprocess.run([python, "-W", "ignore", READER, json.dumps(task)], check=False,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        self.versions = json.loads(done.stdout.splitlines()[-1])
        self.values = {file.name.removesuffix(".npy"): np.load(file, mmap_mode="r")
                       for file in pathlib.Path(task["out"]).iterdir()}
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
        self.videos = len(list(pathlib.Path(task["folder"]).rglob("*.mp4")))

    def frames_differ(self):
        """Or an image of another frame would not be noticed."""
        images = self.values[CAMERAS[1]]
        inner = np.diff(self.values["episode_index"]) == 0
        apart = [np.abs(a.astype(int) - b).mean() for a, b in zip(images[:-1], images[1:])]
        return min(np.array(apart)[inner]) > LEAST_APART


def compare(theirs, values, i):
    """The number of the frame, and by how much its images differ."""
    episode = int(values["episode_index"][i])
    at = theirs.starts[episode] + round(float(values["timestamp"][i, 0]) * FPS)
    here = {key: value[at] for key, value in theirs.values.items()}
    assert (here["index"], here["episode_index"]) == (at, episode)
    assert here["frame_index"] == at - theirs.starts[episode]
    assert values["task"][i] == str(here["task"]), at
    off = 0
    for name in (*DELTAS, *ROWS):
        found = values[name][i].reshape(here[name].shape)
        if name in CAMERAS:
            off = max(off, int(np.abs(found.astype(int) - here[name]).max()))
        else:
            assert np.array_equal(found, here[name]), (at, name)
        if name in DELTAS:
            assert np.array_equal(values[f"{name}_mask"][i], ~here[f"{name}_is_pad"]), (at, name)
    assert off <= MOST_OFF, (at, off)
    return at, off


def epoch(python, folder, settings):
    theirs = Theirs(python, folder, settings)
    assert theirs.frames_differ(), "the images of neighboring frames do not differ enough"
    assert theirs.videos > len(CAMERAS), "all episodes are in one file"
    lerobot.index(f"{folder}/robot", f"{folder}/robot.pen")
    pack = penstock.open(f"{folder}/robot.pen")
    seconds = {name: [d / FPS for d in deltas] for name, deltas in DELTAS.items()}
    pipeline = lerobot.windows(pack, seconds, f"center_crop {SIZE[0]},{SIZE[1]} | tensor u8 ntchw")
    pipeline |= dict.fromkeys(ROWS, "ragged 1 at=0") | {"episode_index": "tensor", "task": "text"}
    found = []
    with penstock.Loader(pack, 32, shuffle=True, frames="length", pipeline=pipeline,
                         output="numpy", threads=2, return_info=True) as loader:
        for batch in loader:
            values = dict(zip((*loader.fields, "info"), batch))
            found += [compare(theirs, values, i) for i in range(values["info"].n_valid)]
    pack.close()
    places, offs = zip(*found)
    assert sorted(places) == list(range(theirs.starts[-1]))
    versions = " ".join(f"{name} {theirs.versions[name]}" for name in ("lerobot", "torchcodec"))
    return (f"{settings['episodes']} episodes in {theirs.videos} videos, {len(found)} samples, "
            f"0 differ (images by at most {max(offs)}), {versions}")


def main():
    try:
        python = environments.python_of("lerobot")
    except Absent as why:
        print(f"lerobot: {why}\n0 passed, 0 failed, 1 skipped")
        return 77
    if not PLUGIN.exists() or not shutil.which("ffprobe"):
        print("needs the video plug-in and ffprobe\n0 passed, 0 failed, 1 skipped")
        return 77
    os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
    tests = Tests("lerobot package")
    for name, settings in DATASETS.items():
        with tempfile.TemporaryDirectory() as folder:
            tests.run(name, epoch, python, folder, settings)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
