# SPDX-License-Identifier: Apache-2.0
"""The set: cut once, packed, gulped, and how much room all of it takes.

Its folder has list.csv, frames, clips.pen, gulp and videos. The last two have only the first clips.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

from .. import program
from ..errors import Absent, LabError
from ..experiment import inputs
from ..experiment.lock import lock
from ..loaders.environments import log_run, python_of
from .sources import sources


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def pack(out: pathlib.Path, root: pathlib.Path, *options: str) -> None:
    """A pack of the list beside it, unless that was made before."""
    if inputs.is_pack(out):
        return
    _say(f"packing {out}")
    shutil.rmtree(out, ignore_errors=True)
    program.output("pack", out.with_name("list.csv"), "--root", root, "-o", out, "--order",
                   "source", *options)


def pack_frames(folder: pathlib.Path) -> None:
    """The pack of a set of frames, which keep their bytes."""
    pack(folder / "clips.pen", folder / "frames", "--mode", "keep")


def room(folder: pathlib.Path, reads: str) -> dict[str, int]:
    """Bytes of a part of a set: payload, index, and the slack of the file system's blocks. The
    index of a folder of files is the blocks of its folders; inodes are not counted."""
    path = folder / reads
    found = inputs.on_disk(path)
    payload, folders = found["bytes"], found["folder_blocks"]
    if inputs.is_pack(path):
        payload = int(program.output_json("info", path, "--json")["bytes"]["payload"])
        folders = 0
    if reads == "gulp":
        payload = sum(file.stat().st_size for file in path.glob("*.gulp"))
    return {"payload": payload, "index": found["bytes"] - payload + folders,
            "slack": found["blocks"] - found["bytes"], "files": found["files"]}


class Set:
    """`clips` clips, cut out of the videos of a folder; without one, out of ffmpeg's test pictures.
    The first `fetched` of them exist as videos and in the gulp directory too."""

    def __init__(self, videos: str, work: pathlib.Path, clips: int, fetched: int) -> None:
        self.videos, self.work, self.clips, self.fetched = videos, work / "clips", clips, fetched
        source = inputs.describe(videos)["id"][:12] if videos else "drawn"
        self.folder = (self.work / f"{clips}-{fetched}-{source}").resolve()

    def make(self) -> None:
        """The frames, the videos and the pack."""
        lock(self.folder)
        if not (self.folder / "list.csv").exists():
            self._cut()
        pack_frames(self.folder)

    def _cut(self) -> None:
        if not shutil.which("ffmpeg"):
            raise LabError("clips are cut by ffmpeg, which was not found: apt-get install ffmpeg")
        try:
            from . import cut
        except ImportError as error:
            raise LabError(f"clips are cut with NumPy and Pillow: {error}. Run "
                           "pip install numpy pillow") from None
        _say(f"cutting {self.clips:,} clips into {self.folder}")
        request = cut.Request(self.folder, sources(self.videos, self.work), self.clips,
                              self.fetched)
        try:
            cut.cut(request)
        except subprocess.CalledProcessError as error:
            raise LabError(f"cannot cut clips: '{error.cmd[0]}' ended with {error.returncode}; "
                           f"expected videos that it can read in '{self.videos}'") from None

    def gulp(self) -> None:
        """The first clips, by GulpIO2's own program; it encodes them anew, at quality 90."""
        out, part = self.folder / "gulp", self.folder / "fetched.csv"
        if (out / "label2idx.json").exists():
            return
        python = python_of("gulpio2")
        _say("writing the gulp directory")
        rows = (self.folder / "list.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        part.write_text("".join(rows[: self.fetched]), encoding="utf-8")
        log_run(self.folder / "gulp.log", python, python.parent / "gulp2_20bn_csv_jpeg",
                "--num_workers", str(len(os.sched_getaffinity(0))), part, self.folder / "frames",
                out)

    def need(self, reads: str, complete: bool, count: int) -> None:
        """Make what a loader reads; Absent if that has fewer clips than are needed."""
        self.make()
        if not complete and count > self.fetched:
            raise Absent(f"stored for the first {self.fetched:,} clips only, and this task needs "
                         f"{count:,}: choose --fetched {count}")
        if reads == "gulp":
            self.gulp()

    def paths(self, reads: str, count: int) -> list[pathlib.Path]:
        """What a loader reads for so many clips."""
        listed = self.folder / "list.csv"
        if reads != "frames":
            return [listed, self.folder / reads]
        rows = listed.read_text(encoding="utf-8").splitlines()[:count]
        return [listed, *(self.folder / reads / row.split(";")[0] for row in rows)]
