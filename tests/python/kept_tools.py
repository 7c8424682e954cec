# SPDX-License-Identifier: Apache-2.0
"""A pack of many short clips of kept videos."""

import random
import shutil

from cli_tools import good
from packet_tools import PLUGIN, encode

X264 = ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast", "-x264-params")
VIDEOS = {  # all frames are 1/25 s apart
    "a.mp4": ("32x24", *X264, "keyint=12:scenecut=0:bframes=2:b-pyramid=normal:open-gop=1"),
    "b.mkv": ("48x32", *X264, "keyint=30:scenecut=0:bframes=0"),
    "c.mp4": ("36x28", "-c:v", "mpeg4", "-g", "8", "-bf", "2"),
}
FRAMES, LONGEST = 120, 30


def missing():
    """What prevents a pack of kept videos, or None."""
    if not PLUGIN.exists():
        return "built without the video plug-in"
    return None if shutil.which("ffmpeg") else "no ffmpeg here"


def write_kept(path, n, *options):
    """Clips of 1 to 30 frames, most of them parts of videos. The field `few` has a number from 1 to
    3, and at most that of the frames."""
    folder, dice = path.with_suffix(".videos"), random.Random(7)
    folder.mkdir()
    for name, (size, *coded) in VIDEOS.items():
        encode(folder / name, *coded, size=size, frames=FRAMES)
    parts = [(name, first, count) for name in VIDEOS for first in range(FRAMES - LONGEST)
             for count in (1, 7, 13, LONGEST)]
    rows = ["path,label,start,end,few"]
    for i, (name, first, count) in enumerate(dice.sample(parts, n)):
        start, end = ((frame - 0.4) / 25 for frame in (first, first + count))
        rows.append(f"{name},{i % 3},{max(start, 0):.3f},{end:.3f},{min(count, 1 + i % 3)}")
    (folder / "list.csv").write_text("\n".join(rows) + "\n")
    good("pack", folder / "list.csv", "-o", path, "--video", "keep", "--order", "source", *options)
