# SPDX-License-Identifier: Apache-2.0
"""Videos of one size and frame rate with a key frame every GOP frames, by the ffmpeg program."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from ..errors import LabError

RATE = 25  # frames per second
CONTAINERS = (".mp4", ".mov", ".mkv", ".webm")  # that penstock keeps
SOURCE_QUALITY, QUALITY = "16", "23"  # crf of H.264


def run(*words: str | pathlib.Path) -> bytes:
    """What ffmpeg or ffprobe prints; a LabError with its last line if it fails."""
    try:
        done = subprocess.run(list(map(str, words)), capture_output=True, check=False,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise LabError(f"videos are encoded by {words[0]}, which was not found: "
                       "apt-get install ffmpeg") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise LabError(f"'{words[0]}' ended with {done.returncode}: {said[-1]}")
    return done.stdout


def frames_of(file: pathlib.Path) -> int:
    """How many frames a video has."""
    told = run("ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets",
               "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", file)
    return int(told.decode().strip().rstrip(","))


def _x264(gop: int, quality: str) -> list[str]:
    return ["-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", quality, "-pix_fmt",
            "yuv420p", "-g", str(gop), "-keyint_min", str(gop), "-sc_threshold", "0",
            "-movflags", "+faststart"]


def _write(out: pathlib.Path, before: Sequence[Any], after: Sequence[Any]) -> None:
    """Complete, or absent."""
    if out.exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"part-{out.name}")
    run("ffmpeg", "-nostdin", "-v", "error", "-y", *before, *after, part)
    part.rename(out)


def source(video: str, out: pathlib.Path, width: int, height: int) -> None:
    """A video in the common size and rate, of high quality."""
    fit = (f"scale={width}:{height}:force_original_aspect_ratio=increase,"
           f"crop={width}:{height},fps={RATE},setsar=1")
    _write(out, ["-i", video, "-map", "0:v:0"], ["-vf", fit, *_x264(RATE, SOURCE_QUALITY)])


def codec_of(file: str | pathlib.Path) -> str:
    """Of the first video stream."""
    told = run("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
               "stream=codec_name", "-of", "csv=p=0", file)
    return told.decode().strip().rstrip(",")


def keepable(video: str, folder: pathlib.Path, number: int) -> None:
    """FOLDER/NUMBER.*: the same file; the same packets as MP4 if penstock does not keep such files.
    AVI files may have two frames of MPEG-4 in one packet."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix = pathlib.Path(video).suffix.lower()
    if suffix in CONTAINERS:
        shutil.copyfile(video, folder / f"{number}{suffix}")
        return
    unpack = ["-bsf:v", "mpeg4_unpack_bframes"] if codec_of(video) == "mpeg4" else []
    _write(folder / f"{number}.mp4", ["-i", video, "-map", "0:v:0"], ["-c", "copy", *unpack])


def short(base: pathlib.Path, out: pathlib.Path, gop: int) -> None:
    """All of a source."""
    _write(out, ["-i", base], _x264(gop, QUALITY))


def more_keys(video: pathlib.Path, out: pathlib.Path, gop: int) -> None:
    """MP4, whatever the name: the command of docs/how-to/video.md, the same on every processor."""
    _write(out, ["-i", video, "-map", "0:V:0", "-map", "0:a?", "-c:a", "copy"],
           ["-c:v", "libx264", "-crf", "18", "-g", str(gop), "-sc_threshold", "0", "-flags",
            "+cgop", "-fps_mode", "passthrough", "-x264-params", "cpu-independent=1", "-f", "mp4"])


def long(bases: Sequence[pathlib.Path], out: pathlib.Path, gop: int, seconds: int) -> None:
    """The sources one after another, repeated until the video has so many seconds."""
    once = sum(map(frames_of, bases))
    times = seconds * RATE // once + 1
    listed = out.with_suffix(".txt")
    listed.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"file '{base.resolve()}'\n" for base in bases]
    listed.write_text("".join(lines * times), encoding="utf-8")
    _write(out, ["-f", "concat", "-safe", "0", "-i", listed],
           ["-frames:v", str(seconds * RATE), *_x264(gop, QUALITY)])
