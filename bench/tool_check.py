#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Floors of packing, verifying, copying, the cache and clips, for CI.

    build/venv/bin/python bench/tool_check.py [--rounds N] [--calibrate] [NAME...]

Each is measured in turns with something that does about the same on the same machine:

keep      `pack --mode keep --no-index` of 4,000 files, and `tar`
index     `pack` of 200 files, which finds the entries of every JPEG, and `jpegtran` in two
          processes
verify    `verify` of a pack, and `cat` of its files
upload    processor time of `copy` of 192 MiB to a scripted S3 server, and of curl
download  processor time of `copy` from it, and of curl; it is compared because the server, not the
          client, limits the rate
cache     a loader's epoch of raw images from a cache, and from the local disk
clips     a loader's epoch of clips, and the same frames read from JPEG files by Pillow

All of it works on drawn pictures. bench/floors.toml has what a quiet machine reaches,
common/floors.py the share of it that is the floor. Ends with 1 when a ratio is under its floor
twice.
"""

import argparse
import concurrent.futures
import contextlib
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import copy_speed
import pack_speed
import ratio_check
from common import floors, places
from penstock.lab.loaders import figures

PENSTOCK = places.BUILD / "penstock"
PHOTOS, THREADS = 200, 2
TIMES = {"keep": 20, "index": 1}  # links to each picture
COPY_MIB, AT_ONCE = 192, 8
NEEDED_ROOM = 2 << 30
FRAMES, N_CLIPS, CLIP_SIZE, CLIP_EPOCHS = 20, 40, (176, 100), 4
CLIP_PIPELINE = "decode | clip 8 2 center | center_crop 84 | tensor u8 ncthw"


def penstock_package():
    sys.path.insert(0, str(places.BUILD / "python"))
    return importlib.import_module("penstock")


def pack(*arguments):
    subprocess.run([PENSTOCK, "pack", *arguments], check=True, stdout=subprocess.DEVNULL)


class Timed:
    """Two calls that do the same amount of work, by the time they take."""

    def round(self, first):
        sides = {"ours": self.ours, "theirs": self.theirs}
        taken = {}
        for side in sides if first == "ours" else reversed(sides):
            self.before()
            taken[side] = pack_speed.timed(sides[side])
        return 1 / taken["ours"], 1 / taken["theirs"]

    def before(self):
        pass


def packing(kind):
    """A comparison of pack_speed.py, with drawn pictures."""

    class Packing(Timed):
        def __init__(self, top):
            options = argparse.Namespace(penstock=PENSTOCK, work=top, times=TIMES,
                                         photos=ratio_check.drawn(PHOTOS))
            test = pack_speed.KINDS[kind](options)
            self.ours, self.theirs, self.before = test.ours, test.theirs, test.before

    return Packing


class PublicClients(copy_speed.Clients):
    """curl needs no signature to read from the scripted server."""

    def sign(self, _call, **what):
        return f"{self.store.url}/{copy_speed.BUCKET}/{what['Key']}"


class Copy:
    """By processor time of the client."""

    def __init__(self, what, top):
        self.what = what
        self.servers = contextlib.ExitStack()
        store = self.servers.enter_context(
            copy_speed.net_stage.S3Server(buckets=[f"{copy_speed.BUCKET},public"]))
        options = argparse.Namespace(penstock=PENSTOCK, mib=COPY_MIB, at_once=AT_ONCE)
        folder = top / f"copy-{what}"
        folder.mkdir()
        self.clients = PublicClients(options, store, folder)
        self.clients.upload_penstock()

    def round(self, first):
        sides = ("penstock", "curl") if first == "ours" else ("curl", "penstock")
        cpu = {side: getattr(self.clients, f"{self.what}_{side}")().cpu for side in sides}
        return 1 / cpu["penstock"], 1 / cpu["curl"]


class Cache(Timed):
    """An epoch each; the first one, which is not counted, fills the cache."""

    def __init__(self, top):
        self.penstock = penstock_package()
        root = top / "store"
        self.local = root / "packs" / "raw.pen"
        self.local.parent.mkdir(parents=True)
        pack(ratio_check.drawn(PHOTOS), "-o", self.local, "--mode", "raw", "--max-side", "256")
        server = copy_speed.net_stage.S3Server(buckets=["packs"], directory=root)
        self.servers = contextlib.ExitStack()
        store = self.servers.enter_context(server)
        self.remote = {"cache": str(top / "cache"), "storage_options": {
            "endpoint": store.url, "region": store.region, "key_id": store.key_id,
            "secret": store.secret}}

    def epochs(self, place, **more):
        pipeline = "decode | center_crop 160 | tensor u8"
        with self.penstock.Loader(place, 50, pipeline=pipeline, order="shuffle", threads=THREADS,
                                  output="numpy", **more) as loader:
            for _ in range(20):
                for _ in loader:
                    pass

    def ours(self):
        self.epochs("s3://packs/raw.pen", **self.remote)

    def theirs(self):
        self.epochs(self.local)


class Clips(Timed):
    def __init__(self, top):
        self.penstock = penstock_package()
        self.frames, self.pack = top / "frames", top / "clips.pen"
        self.draw()
        pack(self.frames, "-o", self.pack, "--kind", "frames")
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)

    def draw(self):
        """Frames cut out of drawn pictures by a window that moves."""
        from PIL import Image

        width, height = CLIP_SIZE
        for number, file in enumerate(places.photo_files(ratio_check.drawn(PHOTOS), N_CLIPS)):
            folder = self.frames / "a" / f"{number:03}"
            folder.mkdir(parents=True)
            image = Image.open(file)
            for frame in range(FRAMES):
                box = (4 * frame, 3 * frame, 4 * frame + width, 3 * frame + height)
                image.crop(box).save(folder / f"{frame:03}.jpg", quality=85)

    def ours(self):
        with self.penstock.Loader(self.pack, 10, pipeline=CLIP_PIPELINE, threads=THREADS,
                                  output="numpy", order="sequential") as loader:
            for _ in range(CLIP_EPOCHS):
                for _ in loader:
                    pass

    def theirs(self):
        for _ in range(CLIP_EPOCHS):
            list(self.pool.map(self.read, sorted(self.frames.glob("a/*"))))

    @staticmethod
    def read(folder):
        import numpy
        from PIL import Image

        width, height = CLIP_SIZE
        left, top = (width - 84) // 2, (height - 84) // 2
        files = sorted(folder.iterdir())
        first = (FRAMES - 16) // 2
        chosen = [Image.open(file).convert("RGB").crop((left, top, left + 84, top + 84))
                  for file in files[first : first + 16 : 2]]
        return numpy.stack([numpy.asarray(image).transpose(2, 0, 1) for image in chosen])


KINDS = {
    "keep": packing("keep"), "index": packing("index"), "verify": packing("verify"),
    "upload": lambda top: Copy("upload", top), "download": lambda top: Copy("download", top),
    "cache": Cache, "clips": Clips,
}


def measure_one(name, rounds, top):
    """The ratio of the medians; a round that is not counted warms up."""
    folder = top / name
    folder.mkdir()
    test = KINDS[name](folder)
    with getattr(test, "servers", contextlib.nullcontext()):
        test.round("ours")
        rates = [test.round("theirs" if n % 2 else "ours") for n in range(rounds)]
    shutil.rmtree(folder)
    return figures.ratio(*zip(*rates))


def work_folder():
    """In memory where there is room, since disks differ more than machines do."""
    memory = pathlib.Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        if shutil.disk_usage(memory).free > NEEDED_ROOM:
            return memory
    places.WORK.mkdir(parents=True, exist_ok=True)
    return places.WORK


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calibrate", action="store_true",
                        help="print the figures for floors.toml; use it on a quiet machine")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(KINDS))
    options = parser.parse_args()
    if set(options.names) - set(KINDS):
        parser.error(f"expected {', '.join(KINDS)}, found {' '.join(options.names)}")
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    rows = [row for row in floors.rows("tool") if row["name"] in (options.names or KINDS)
            and ("cpu" not in row or row["cpu"] in flags)]
    judge = floors.calibrate if options.calibrate else floors.check

    def measure(rows):
        with tempfile.TemporaryDirectory(prefix="penstock-floors-", dir=work_folder()) as top:
            return [measure_one(row["name"], options.rounds, pathlib.Path(top)) for row in rows]

    return 1 if judge(rows, measure) else 0


if __name__ == "__main__":
    sys.exit(main())
