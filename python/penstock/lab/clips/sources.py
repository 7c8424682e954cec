# SPDX-License-Identifier: Apache-2.0
"""The videos that sets are made of: those of a folder, or ffmpeg's test pictures."""

from __future__ import annotations

import pathlib
import subprocess

from ..errors import LabError
from ..experiment.lock import lock

TEST_SOURCES = ("testsrc2", "mandelbrot", "life=mold=10:r=25:ratio=0.3:death_color=#C83232",
                "gradients=n=8:speed=0.02", "cellauto=rule=110")


def test_videos(work: pathlib.Path) -> list[str]:
    """Videos of ffmpeg's test pictures."""
    lock(work)
    files = [work / f"{i}.mp4" for i in range(len(TEST_SOURCES))]
    for source, file in zip(TEST_SOURCES, files):
        if not file.exists():
            more, part = ":" if "=" in source else "=", file.with_name(f"part-{file.name}")
            subprocess.run(
                ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"{source}{more}s=340x256",
                 "-t", "6", "-pix_fmt", "yuv420p", part], check=True)
            part.rename(file)
    return [str(file) for file in files]


def sources(videos: str, work: pathlib.Path) -> list[str]:
    """The videos of a folder; without one, those of test pictures, which are kept in `work`."""
    if not videos:
        return test_videos(work / "drawn")
    files = sorted(str(file) for file in pathlib.Path(videos).glob("*") if file.is_file())
    if not files:
        raise LabError(f"no videos in '{videos}': expected files such as NAME.mp4")
    return files
