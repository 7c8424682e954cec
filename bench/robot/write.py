# SPDX-License-Identifier: Apache-2.0
"""Writes a dataset of two cameras by the lerobot package; runs in its environment.

    write.py TASK       TASK is JSON: folder, videos, size, episodes, frames, codec

The images are frames of the videos, in turn; without videos they are a moving pattern.
"""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]
                    / "python/penstock/lab/loaders/worker"))

import av
import lerobot_package
import numpy as np

MOST_FRAMES = 300  # of a video


def frames_of(video, height, width):
    found = []
    with av.open(str(video), metadata_errors="replace") as container:
        for frame in container.decode(video=0):
            found.append(frame.to_ndarray(format="rgb24", width=width, height=height))
            if len(found) == MOST_FRAMES:
                break
    return found


def pattern(height, width):
    y, x = np.mgrid[:height, :width]
    waves = [128 + 90 * np.sin((x + 3 * i) / 23) * np.cos((y - 2 * i) / 17) for i in range(200)]
    return [np.stack([wave, wave[::-1], wave[:, ::-1]], -1).astype(np.uint8) for wave in waves]


def main():
    task = json.loads(sys.argv[1])
    height, width = task["size"]
    clips = [frames_of(video, height, width) for video in task["videos"]]
    clips = clips or [pattern(height, width)]

    def picture(camera, episode, frame):
        clip = clips[(episode + camera) % len(clips)]
        there_and_back = (frame + 31 * (episode // len(clips))) % (2 * len(clip))
        return clip[min(there_and_back, 2 * len(clip) - 1 - there_and_back)]

    lerobot_package.write(task["folder"], task["size"], [task["frames"]] * task["episodes"],
                          picture, task["codec"], streaming=True)


if __name__ == "__main__":
    main()
