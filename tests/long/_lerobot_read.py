# SPDX-License-Identifier: Apache-2.0
"""What the lerobot package writes and reads, for long_lerobot_package.py; runs in its environment.

    _lerobot_read.py TASK       TASK is JSON: folder, lengths, size, codec, deltas, backend, ...

Writes the dataset, reads every sample of it, and saves the values of each key as OUT/KEY.npy.
"""

import json
import pathlib
import sys

WORKER = pathlib.Path(__file__).resolve().parents[2] / "python/penstock/lab/loaders/worker"
sys.path.insert(0, str(WORKER))

import lerobot_package  # noqa: E402
import numpy as np  # noqa: E402


def painter(height, width):
    """Ramps that move by some values from frame to frame, so that frames differ."""
    y, x = np.mgrid[:height, :width]

    def picture(camera, episode, frame):
        ramps = [x * 2 + 9 * frame + 20 * episode, y * 2 + 15 * frame + 90 * camera,
                 x + y + 9 * episode + 7 * frame]
        return np.stack([np.abs(ramp % 510 - 255) for ramp in ramps], -1).astype(np.uint8)

    return picture


def as_bytes(images):
    """LeRobot's floats from 0 to 1 are bytes divided by 255."""
    scaled = images * 255
    assert np.abs(scaled - np.rint(scaled)).max() < 1e-3
    return np.rint(scaled).astype(np.uint8)


def read(task):
    fps = lerobot_package.FPS
    deltas = {name: [d / fps for d in frames] for name, frames in task["deltas"].items()}
    dataset = lerobot_package.opened(task["folder"], deltas, task["backend"])
    files = {}
    for i in range(len(dataset)):
        for key, value in dataset[i].items():
            value = np.array(value, "U64") if isinstance(value, str) else value.numpy()
            if key in lerobot_package.CAMERAS:
                value = as_bytes(value)
            if i == 0:
                files[key] = np.lib.format.open_memmap(
                    f"{task['out']}/{key}.npy", "w+", value.dtype, (len(dataset), *value.shape))
            files[key][i] = value


def main():
    task = json.loads(sys.argv[1])
    lerobot_package.write(task["folder"], task["size"], task["lengths"], painter(*task["size"]),
                          task["codec"], task["file_mb"], task["streaming"])
    pathlib.Path(task["out"]).mkdir()
    read(task)
    print(json.dumps(lerobot_package.versions()))


if __name__ == "__main__":
    main()
