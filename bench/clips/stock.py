# SPDX-License-Identifier: Apache-2.0
"""The set: cut once, packed, gulped, and how much room all of it takes."""

import json
import os
import pathlib
import subprocess
import sys

from common import places, say
from penstock.lab.loaders import environments

MODES = ("keep",)
TEST_SOURCES = ("testsrc2", "mandelbrot", "life=mold=10:r=25:ratio=0.3:death_color=#C83232",
                "gradients=n=8:speed=0.02", "cellauto=rule=110")


def source_videos(folder, work):
    """The videos there are, or ones that ffmpeg draws."""
    files = sorted(str(file) for file in folder.glob("*") if file.is_file())
    if files:
        return files
    say(f"no videos in {folder}: ffmpeg's test pictures take their place")
    drawn = work / "drawn"
    drawn.mkdir(parents=True, exist_ok=True)
    for i, source in enumerate(TEST_SOURCES):
        file = drawn / f"{i}.mp4"
        if not file.exists():
            more = ":" if "=" in source else "="
            subprocess.run(
                ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"{source}{more}s=340x256",
                 "-t", "6", "-pix_fmt", "yuv420p", file], check=True)
    return sorted(map(str, drawn.glob("*.mp4")))


def room(paths):
    """Bytes of files, what the file system takes for them, and how many there are."""
    found = {"bytes": 0, "disk": 0, "files": 0, "folders": 0, "folder_disk": 0}
    for top in paths:
        for folder, _, names in os.walk(top):
            found["folders"] += 1
            found["folder_disk"] += os.stat(folder).st_blocks * 512
            for name in names:
                info = os.stat(os.path.join(folder, name))
                found["bytes"] += info.st_size
                found["disk"] += info.st_blocks * 512
                found["files"] += 1
    return found


class Stock:
    def __init__(self, options):
        self.clips, self.videos, self.python = options.clips, options.fetched, options.python
        self.folder = places.WORK / "clips" / str(self.clips)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sources = options.videos

    def make(self):
        self.cut()
        for mode in MODES:
            self.pack(mode)
        try:
            self.gulp()
        except environments.Absent as why:
            say(f"no gulp directory: {why}")

    def cut(self):
        if (self.folder / "list.csv").exists():
            return
        say(f"cutting {self.clips:,} clips ...")
        request = {"out": str(self.folder), "clips": self.clips, "videos": self.videos,
                   "sources": source_videos(self.sources, places.WORK / "clips"),
                   "processes": places.machine()["cores"]}
        subprocess.run([self.python, places.BENCH / "clips" / "cut.py"], check=True, text=True,
                       input=json.dumps(request))

    def pack(self, mode):
        record = self.folder / f"{mode}.json"
        if record.exists():
            return
        say(f"packing, --mode {mode} ...")
        done = subprocess.run(
            [places.BUILD / "penstock", "pack", self.folder / "list.csv", "--root",
             self.folder / "frames", "-o", self.folder / f"{mode}.pen", "--mode", mode, "--order",
             "source", "--json"], check=True, text=True, stdout=subprocess.PIPE)
        record.write_text(done.stdout, encoding="utf-8")

    def gulp(self):
        """The clips that are fetched, by GulpIO2's own program; it encodes them anew, at q90."""
        out, part = self.folder / "gulp", self.folder / "fetched.csv"
        if (out / "label2idx.json").exists():
            return
        bin_folder = pathlib.Path(environments.python_of("gulpio2")).parent
        say("gulping ...")
        rows = (self.folder / "list.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        part.write_text("".join(rows[: self.videos]), encoding="utf-8")
        subprocess.run(
            [bin_folder / "python", bin_folder / "gulp2_20bn_csv_jpeg", "--num_workers",
             str(places.machine()["cores"]), part, self.folder / "frames", out],
            check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)

    def sizes(self):
        """One row for each way to store the set."""
        frames = room([self.folder / "frames"])
        rows = [{"what": "JPEG files", "payload": frames["bytes"], "index": frames["folder_disk"],
                 "slack": frames["disk"] - frames["bytes"], "files": frames["files"],
                 "folders": frames["folders"]}]
        for mode in MODES:
            told = json.loads((self.folder / f"{mode}.json").read_text(encoding="utf-8"))["bytes"]
            here = room([self.folder / f"{mode}.pen"])
            rows.append({"what": f"penstock, {mode}", "payload": told["payload"],
                         "index": here["bytes"] - told["payload"] + here["folder_disk"],
                         "slack": here["disk"] - here["bytes"], "files": here["files"],
                         "folders": here["folders"]})
        return rows

    def warm(self):
        """All that will be read goes through the page cache once."""
        keys = [line.split(";")[0] for line in
                (self.folder / "list.csv").read_text(encoding="utf-8").splitlines()]
        tops = [self.folder / name for name in ("keep.pen", "gulp", "videos")]
        for top in [*tops, *[self.folder / "frames" / key for key in keys[: self.videos]]]:
            for folder, _, names in os.walk(top):
                for name in names:
                    pathlib.Path(folder, name).read_bytes()
