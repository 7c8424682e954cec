# SPDX-License-Identifier: Apache-2.0
"""The sets: videos of one length and GOP, as files, as a pack that keeps them, and as frames.

The folder of a set has videos/<number>.mp4, list.csv and packs.
"""

from __future__ import annotations

import pathlib
import sys

from ..clips.sets import pack
from ..clips.sources import sources
from ..experiment import inputs
from ..experiment.lock import lock
from . import encode

LENGTHS = ("short", "long")
SMALL = 128  # shorter side of smaller frames
MORE_KEYS = 12  # frames from one key frame to the next in gop12.pen
# Options of the packs.
PACKS = {
    "kept.pen": ["--video", "keep"],
    "gop12.pen": ["--video", "keep"],
    "frames.pen": ["--mode", "encode"],
    "small.pen": ["--mode", "encode", "--short-side", str(SMALL)],
}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Sets:
    """All sets of one source: a folder of videos, or ffmpeg's test pictures without one."""

    def __init__(self, videos: str, work: pathlib.Path, width: int, height: int,
                 seconds: int) -> None:
        self.videos, self.work = videos, (work / "videos").resolve()
        self.width, self.height, self.seconds = width, height, seconds
        source = inputs.describe(videos)["id"][:12] if videos else "drawn"
        self.folder = self.work / f"{source}-{width}x{height}-{seconds}"

    def _bases(self) -> list[pathlib.Path]:
        bases = []
        for i, video in enumerate(sources(self.videos, self.work)):
            bases.append(self.folder / "base" / f"{i}.mp4")
            encode.source(video, bases[-1], self.width, self.height)
        return bases

    def make(self, length: str, gop: int) -> Set:
        """The videos, which later runs use again."""
        lock(self.folder)
        made = Set(self.folder / f"{length}-{gop}")
        if not (made.folder / "list.csv").exists():
            _say(f"encoding {length} videos with GOP {gop} into {made.folder}")
            bases = self._bases()
            if length == "long":
                encode.long(bases, made.videos / "0.mp4", gop, self.seconds)
            else:
                for i, base in enumerate(bases):
                    encode.short(base, made.videos / f"{i}.mp4", gop)
            made.write_list()
        return made

    def source(self) -> Set:
        """The videos as they are."""
        lock(self.folder)
        made = Set(self.folder / "source")
        if not (made.folder / "list.csv").exists():
            for i, video in enumerate(sources(self.videos, self.work)):
                encode.keepable(video, made.videos, i)
            made.write_list()
        return made


class Set:
    """Videos of one length and GOP."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.videos = folder, folder / "videos"

    def write_list(self) -> None:
        """Written last, when the set is complete."""
        part = self.folder / "list.part"
        files = [file for file in self.videos.glob("[0-9]*") if file.suffix in encode.CONTAINERS]
        files.sort(key=lambda file: int(file.stem))
        rows = [f"{file.name},{i}\n" for i, file in enumerate(files)]
        part.write_text("".join(["path,label\n", *rows]), encoding="utf-8")
        part.rename(self.folder / "list.csv")

    def names(self) -> list[str]:
        """File names of the videos, in the order of the pack."""
        rows = (self.folder / "list.csv").read_text(encoding="utf-8").splitlines()[1:]
        return [row.split(",")[0] for row in rows]

    def need(self, reads: str) -> None:
        """Makes what a loader reads."""
        if reads in PACKS:
            root = self._with_more_keys() if reads == "gop12.pen" else self.videos
            pack(self.folder / reads, root, *PACKS[reads], "--video-seconds", "3600")

    def _with_more_keys(self) -> pathlib.Path:
        """The folder of the videos, encoded again."""
        folder = self.folder / "gop12"
        for name in self.names():
            encode.more_keys(self.videos / name, folder / name, MORE_KEYS)
        return folder

    def frames(self) -> int:
        """Of all videos."""
        return sum(encode.frames_of(self.videos / name) for name in self.names())

    def paths(self, reads: str) -> list[pathlib.Path]:
        """What a loader reads; with the list, so that the folder of all is that of the set."""
        return [self.folder / "list.csv", self.folder / reads]

    def bytes(self, reads: str) -> int:
        """On the disk."""
        return inputs.on_disk(self.folder / reads)["bytes"]
