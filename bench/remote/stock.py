# SPDX-License-Identifier: Apache-2.0
"""What is read in a run: a pack, an object for each photograph, tars.

Made once below build/bench, in a folder named by the photographs, and uploaded into every store."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

from common import places

from remote import stores

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
import plain_reader

UPLOADS = 8


class Stock:
    def __init__(self, files, folder, copies, object_copies=1):
        self.files, self.copies = [str(file) for file in files], copies
        self.folder = folder / f"remote-{copies}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.samples, self.objects = len(files) * copies, len(files) * object_copies
        self.penstock = places.BUILD / "penstock"
        self.pack = self.folder / "photos.pen"

    # --- made here

    def make_pack(self):
        """Default mode and blocks, of links to the photographs. One that this program does not
        read, of another version, is made anew."""
        known = subprocess.run([self.penstock, "info", self.pack], check=False,
                               capture_output=True)
        if known.returncode == 0:
            return
        shutil.rmtree(self.pack, ignore_errors=True)
        links = self.folder / "links"
        for number, file in enumerate(map(pathlib.Path, self.files)):
            place = links / file.parent.name
            place.mkdir(parents=True, exist_ok=True)
            for k in range(self.copies):
                link = place / f"{number:06}-{k:02}{file.suffix}"
                if not link.is_symlink():
                    link.symlink_to(file.resolve())
        subprocess.run([self.penstock, "pack", links, "-o", self.pack], check=True,
                       stdout=subprocess.DEVNULL)

    def task(self, setting, spec):
        """What a loader is told; of a turn or of its preparation."""
        keys = ("batch", "size", "short", "transform", "workers", "output", "memory")
        return {**{key: setting[key] for key in keys}, "options": spec.get("options", {}),
                "shuffle_buffer": setting.get("shuffle_buffer"),
                "samples": self.samples, "bucket": stores.BUCKET,
                "pack": str(self.pack), "address": f"s3://{stores.BUCKET}/pack",
                "names": [f"objects/{i:06}" for i in range(self.objects)],
                "out": str(self.folder / f"{spec['stock']}-{self.copies}"), "prefix": spec["stock"],
                "over": str(self.over(spec["stock"])),
                "build": str(places.BUILD)}

    # --- uploaded

    def upload(self, servers, what, folder):
        if what == "pack":
            self.make_pack()
            subprocess.run([self.penstock, "copy", self.pack, f"s3://{stores.BUCKET}/pack"],
                           env=servers.near.environment(), check=True, stdout=subprocess.DEVNULL)
            return
        if what == "objects":
            pairs = [(self.files[i % len(self.files)], f"objects/{i:06}")
                     for i in range(self.objects)]
        else:
            pairs = [(file, f"{what}/{file.relative_to(folder)}")
                     for file in sorted(pathlib.Path(folder).rglob("*")) if file.is_file()]
        with concurrent.futures.ThreadPoolExecutor(UPLOADS) as pool:
            for done in [pool.submit(self.put, servers.client, *pair) for pair in pairs]:
                done.result()

    def over(self, what):
        """The pack over objects that stay where they are."""
        return self.folder / f"{what}-index.pen"

    def index(self, servers, what, folder):
        """Anew in each run: the objects have just been written."""
        store, out = f"s3://{stores.BUCKET}/{what}", self.over(what)
        shutil.rmtree(out, ignore_errors=True)
        if what == "tars":
            sources = [f"{store}/{tar.name}" for tar in sorted(pathlib.Path(folder).glob("*.tar"))]
        else:
            sources = [self.folder / "objects.csv", "--root", store]
            rows = [f"{i:06},{i}\n" for i in range(self.objects)]
            sources[0].write_text("path,label\n" + "".join(rows), encoding="utf-8")
        subprocess.run([self.penstock, "index", *sources, "-o", out], check=True,
                       env=servers.near.environment(), stdout=subprocess.DEVNULL)

    @staticmethod
    def put(client, file, key):
        with open(file, "rb") as body:
            client.put_object(Bucket=stores.BUCKET, Key=key, Body=body)

    # --- its blocks

    def blocks(self):
        """(key of the object, offset, bytes) of every block, from the tails of the shards."""
        found = []
        names, footer, _ = plain_reader.RECORDS["footer"]
        _, row, _ = plain_reader.RECORDS["row"]
        for file in sorted(self.pack.glob("*/*.shard")):
            size = file.stat().st_size
            with file.open("rb") as shard:
                shard.seek(size - footer.size)
                foot = dict(zip(names, footer.unpack(shard.read(footer.size))))
                shard.seek(foot["tail_offset"])
                table = shard.read(row.size * foot["n_blocks"])
            key = f"pack/{file.relative_to(self.pack)}"
            found += [(key, offset, length) for offset, length, *_ in row.iter_unpack(table)]
        return found

    def block_samples(self):
        """K, of the manifest's head."""
        names, head, _ = plain_reader.RECORDS["manifest"]
        with (self.pack / "manifest").open("rb") as manifest:
            return dict(zip(names, head.unpack(manifest.read(head.size))))["block_samples"]


def bytes_below(folder):
    return sum(os.path.getsize(file) for file in pathlib.Path(folder).rglob("*")
               if file.is_file())
