# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks on the local disk or in an object store, Pillow in worker processes."""

import os
import pathlib

import litdata
import PIL
import torch
from litdata.streaming.writer import BinaryWriter

from . import pil
from .store import Cache, folder_of


def write_chunks(folder, files):
    """Made once, in chunks of 64 MB."""
    if not (folder / "index.json").exists():
        writer = BinaryWriter(str(folder), chunk_bytes="64MB")
        for i, file in enumerate(files):
            writer[i] = {"image": pathlib.Path(file).read_bytes(), "label": i}
        writer.done()
        writer.merge()


class Images(litdata.StreamingDataset):
    def __init__(self, pixels, *rest, **settings):
        super().__init__(*rest, **settings)
        self.pixels = pixels  # its own attribute transform is something else

    def __getitem__(self, i):
        item = super().__getitem__(i)
        return torch.from_numpy(self.pixels.pixels(bytes(item["image"]))), item["label"]


NOTES = ["downloads complete chunks of 64 MB to the local disk; by boto3, as obstore refuses http",
         "batch_decode=\"all\": with what it chooses by itself it reads a chunk again and again"]


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, folder = task, pathlib.Path(task["work"]) / f"litdata-{task['set']}"
        write_chunks(folder, task["files"])
        self.stored = sorted(map(str, folder.glob("*.bin")))
        self.versions = {"litdata": litdata.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        self.addresses, self.loader = task.get("addresses"), None
        if self.addresses:
            self.cache, self.notes = Cache(task["cache"]), NOTES
        else:
            self.loader = self.open(self.dataset(str(folder)), persistent_workers=True)

    def dataset(self, place, **more):
        return Images(pil.Transform(self.task), place, shuffle=self.task["transform"] == "train",
                      **more)

    def remote(self):
        storage = {"endpoint_url": os.environ["AWS_ENDPOINT_URL"]}
        return self.dataset(folder_of(self.addresses), cache_dir=self.cache.empty(),
                            storage_options=storage, batch_decode="all")

    def open(self, data, **more):
        return litdata.StreamingDataLoader(data, batch_size=self.task["batch"],
                                           num_workers=self.task["threads"], **more)

    def epoch(self):
        for _, ids in self.loader or self.open(self.remote()):
            yield ids

    def check(self):
        if not self.addresses:
            return pil.check(self.task, self.task["files"])
        data, ids = self.remote(), [case["id"] for case in self.task["cases"]]
        read = litdata.StreamingDataset.__getitem__
        return pil.check(self.task, {i: bytes(read(data, i)["image"]) for i in ids})
