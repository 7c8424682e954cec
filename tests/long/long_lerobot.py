# SPDX-License-Identifier: Apache-2.0
"""An epoch over a LeRobot dataset of 200 episodes and two cameras: every sample equals what LeRobot
selects, from the Parquet files and from the frames of ffmpeg."""

import os
import pathlib
import shutil
import sys
import tempfile
import time

import numpy as np
from _package import BUILD, ROOT, Tests, penstock, scaled
from penstock import lerobot

sys.path.insert(0, str(ROOT / "tests" / "python"))

PLUGIN = BUILD / "video" / "libpenstock-video.so.0"
EPISODES = scaled(200, 8)
DELTAS = {"observation.images.top": [-6, -3, 0], "observation.images.wrist": [0],
          "observation.state": [-1, 0], "action": list(range(16))}
EPOCHS = 2


def compare(dataset, values, i, place):
    off = 0
    for name, deltas in DELTAS.items():
        expected, is_pad = dataset.window(name, *place, deltas)
        assert np.array_equal(values[f"{name}_mask"][i], ~is_pad), (place, name)
        if name in dataset.cameras:
            off = max(off, int(np.abs(values[name][i].astype(int) - expected).max()))
        else:
            assert np.array_equal(values[name][i], expected), (place, name)
    assert off <= 1, (place, off)
    return off


def epochs(dataset, pack, fps, size):
    seconds = {name: [d / fps for d in deltas] for name, deltas in DELTAS.items()}
    crop = f"center_crop {size[0]},{size[1]} | tensor u8 nthwc"
    pipeline = lerobot.windows(pack, seconds, crop)
    pipeline |= {"timestamp": "ragged 1 at=0", "episode_index": "tensor"}
    off, began, loading = 0, time.monotonic(), 0.0
    with penstock.Loader(pack, 32, shuffle=True, frames="length", pipeline=pipeline,
                         output="numpy", threads=2, return_info=True) as loader:
        for _ in range(EPOCHS):
            seen = []
            for batch in loader:
                loading += time.monotonic() - began
                values = dict(zip((*loader.fields, "info"), batch))
                for i in range(values["info"].n_valid):
                    frame = round(float(values["timestamp"][i, 0]) * fps)
                    seen.append((int(values["episode_index"][i]), frame))
                    off = max(off, compare(dataset, values, i, seen[-1]))
                began = time.monotonic()
            assert sorted(seen) == [(e, f) for e, n in enumerate(dataset.lengths)
                                    for f in range(n)]
    n = EPOCHS * len(seen)
    return (f"{len(dataset.lengths)} episodes, {n} samples, 0 differ (images by at most {off}), "
            f"{n / loading:.0f} samples/s (not a measurement)")


def main():
    if not PLUGIN.exists() or not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        print("needs the video plug-in and ffmpeg\n0 passed, 0 failed, 1 skipped")
        return 77
    os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
    import lerobot_tools

    tests = Tests("lerobot")
    lengths = np.random.default_rng(1).integers(5, 60, EPISODES).tolist()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        dataset = lerobot_tools.Dataset(root / "robot", lengths, per_file=20, per_data=30)
        lerobot.index(root / "robot", root / "robot.pen")
        tests.run("epochs", epochs, dataset, penstock.open(root / "robot.pen"),
                  lerobot_tools.FPS, lerobot_tools.SIZE)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
