#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts a Jester-like set out of some videos.

    build/venv/bin/python bench/clips/cut.py < request

Every video is shrunk to three sizes. A clip is 37 frames of one of them, from a random frame on,
the same random box of 176x100 in all of them, written as JPEG files of quality 85, 4:2:0:
OUT/frames/<id>/00001.jpg ..., with OUT/list.csv, `id;label`. Of the first `videos` clips the
same pixels go to OUT/videos/<id>.mp4 as well (H.264, crf 18, 12 frames a second, one key frame).
What is drawn depends on the number of the clip alone.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image

FRAMES, WIDTH, HEIGHT, RATE, QUALITY = 37, 176, 100, 12, 85
MOST_FRAMES = 300  # kept of one video
SHARES = (0.6, 0.8, 1.0)  # of the video's width, or its height, that a box has


def decoded(file):
    """All frames of a video, at most MOST_FRAMES of them."""
    probe = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height",
         "-of", "csv=p=0", file], check=True, capture_output=True, text=True)
    width, height = map(int, probe.stdout.strip().split(",")[:2])
    raw = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-noautorotate", "-i", file, "-frames:v",
         str(MOST_FRAMES), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


def shrunk(frames, share):
    """So that a box has this share of the smaller side."""
    height, width = frames.shape[1:3]
    factor = max(WIDTH / width, HEIGHT / height) / share
    size = (max(WIDTH, round(width * factor)), max(HEIGHT, round(height * factor)))
    return [Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC) for frame in frames]


def drawn(sizes, number):
    """The 37 pictures of a clip."""
    random = np.random.default_rng(number)
    frames = sizes[int(random.integers(0, len(sizes)))]
    n, (width, height) = len(frames), frames[0].size
    start = int(random.integers(0, max(1, n - FRAMES + 1)))
    left = int(random.integers(0, width - WIDTH + 1))
    top = int(random.integers(0, height - HEIGHT + 1))
    box = (left, top, left + WIDTH, top + HEIGHT)
    return [frames[(start + i) % n].crop(box) for i in range(FRAMES)]


def write_videos(clips, numbers, out):
    """One run of ffmpeg for many clips: a program takes longer to start than to encode one."""
    pattern = str(out / "videos" / f"part-{numbers[0]}-%d.mp4")
    ends = ",".join(str(FRAMES * (i + 1)) for i in range(len(numbers) - 1))
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
         f"{WIDTH}x{HEIGHT}", "-r", str(RATE), "-i", "-", "-c:v", "libx264", "-preset", "veryfast",
         "-threads", "1", "-crf", "18", "-pix_fmt", "yuv420p", "-g", str(FRAMES), "-keyint_min",
         str(FRAMES), "-sc_threshold", "0", "-f", "segment", "-segment_frames", ends,
         "-reset_timestamps", "1", "-segment_format_options", "movflags=+faststart", pattern],
        input=b"".join(picture.tobytes() for clip in clips for picture in clip), check=True)
    for i, number in enumerate(numbers):
        os.replace(pattern.replace("%d", str(i)), out / "videos" / f"{number + 1}.mp4")


def write_frames(pictures, number, out):
    folder = out / "frames" / str(number + 1)
    folder.mkdir(parents=True, exist_ok=True)
    for i, picture in enumerate(pictures, 1):
        picture.save(folder / f"{i:05}.jpg", quality=QUALITY, subsampling="4:2:0")


def cut_from(request, at):
    """All clips of one source, unless that was done before."""
    out, sources = pathlib.Path(request["out"]), request["sources"]
    done = out / f"source-{at}.done"
    if done.exists():
        return
    frames = decoded(sources[at])
    sizes = [shrunk(frames, share) for share in SHARES]
    numbers = range(at, request["clips"], len(sources))
    for number in numbers:
        write_frames(drawn(sizes, number), number, out)
    filmed = [number for number in numbers if number < request["videos"]]
    if filmed:
        write_videos([drawn(sizes, number) for number in filmed], filmed, out)
    done.touch()


def main():
    request = json.load(sys.stdin)
    out, sources = pathlib.Path(request["out"]), request["sources"]
    (out / "videos").mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(request["processes"]) as pool:
        list(pool.map(cut_from, [request] * len(sources), range(len(sources))))
    rows = [f"{i + 1};{pathlib.Path(sources[i % len(sources)]).stem}\n"
            for i in range(request["clips"])]
    (out / "list.csv").write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
