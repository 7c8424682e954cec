# SPDX-License-Identifier: Apache-2.0
"""Cuts a set like Jester out of some videos.

Every video is shrunk to three sizes. A clip is 37 frames of one of them, from a random frame on,
the same random box of 176x100 in all of them, written as JPEG files of quality 85, 4:2:0:
OUT/frames/<id>/00001.jpg ..., with OUT/list.csv, `id;label`. Of the first clips the same pixels go
to OUT/videos/<id>.mp4 as well (H.264, crf 18, 12 frames a second, one key frame). What is drawn
depends on the number of the clip alone.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from .files import FRAMES, HEIGHT, WIDTH, write_frames, write_list

RATE = 12  # frames a second of a video
MOST_FRAMES = 300  # kept of one video
SHARES = (0.6, 0.8, 1.0)  # of the video's width, or its height, that a box has

Picture = Any  # of Pillow


class Request(NamedTuple):
    """out: the folder; sources: videos; clips: how many; videos: how many of them as H.264."""

    out: pathlib.Path
    sources: Sequence[str]
    clips: int
    videos: int


def decoded(file: str) -> Any:
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


def shrunk(frames: Any, share: float) -> list[Picture]:
    """So that a box has this share of the smaller side."""
    height, width = frames.shape[1:3]
    factor = max(WIDTH / width, HEIGHT / height) / share
    size = (max(WIDTH, round(width * factor)), max(HEIGHT, round(height * factor)))
    return [Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC) for frame in frames]


def drawn(sizes: list[list[Picture]], number: int) -> list[Picture]:
    """The 37 pictures of a clip."""
    random = np.random.default_rng(number)
    frames = sizes[int(random.integers(0, len(sizes)))]
    n, (width, height) = len(frames), frames[0].size
    start = int(random.integers(0, max(1, n - FRAMES + 1)))
    left = int(random.integers(0, width - WIDTH + 1))
    top = int(random.integers(0, height - HEIGHT + 1))
    box = (left, top, left + WIDTH, top + HEIGHT)
    return [frames[(start + i) % n].crop(box) for i in range(FRAMES)]


def write_videos(clips: list[list[Picture]], numbers: list[int], out: pathlib.Path) -> None:
    """One run of ffmpeg for many clips: a program takes longer to start than to encode one."""
    pattern = str(out / "videos" / f"part-{numbers[0]}-%d.mp4")
    ends = ",".join(str(FRAMES * (i + 1)) for i in range(len(numbers) - 1))
    segments = ["-segment_frames", ends] if ends else []
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
         f"{WIDTH}x{HEIGHT}", "-r", str(RATE), "-i", "-", "-c:v", "libx264", "-preset", "veryfast",
         "-threads", "1", "-crf", "18", "-pix_fmt", "yuv420p", "-g", str(FRAMES), "-keyint_min",
         str(FRAMES), "-sc_threshold", "0", "-f", "segment", *segments, "-reset_timestamps", "1",
         "-segment_format_options", "movflags=+faststart", pattern],
        input=b"".join(picture.tobytes() for clip in clips for picture in clip), check=True)
    for i, number in enumerate(numbers):
        os.replace(pattern.replace("%d", str(i)), out / "videos" / f"{number + 1}.mp4")


def cut_from(request: Request, at: int) -> None:
    """All clips of one source, unless that was done before."""
    done = request.out / f"source-{at}.done"
    if done.exists():
        return
    frames = decoded(request.sources[at])
    sizes = [shrunk(frames, share) for share in SHARES]
    numbers = range(at, request.clips, len(request.sources))
    for number in numbers:
        write_frames(drawn(sizes, number), request.out / "frames" / str(number + 1))
    filmed = [number for number in numbers if number < request.videos]
    if filmed:
        write_videos([drawn(sizes, number) for number in filmed], filmed, request.out)
    done.touch()


def cut(request: Request) -> None:
    sources = request.sources
    (request.out / "videos").mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(cut_from, [request] * len(sources), range(len(sources))))
    labels = [pathlib.Path(source).stem for source in sources]
    write_list(request.out, [(str(i + 1), labels[i % len(labels)]) for i in range(request.clips)])
