# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks on the local disk, Pillow in worker processes."""

import pathlib

import litdata
import PIL
import torch
from litdata.streaming.writer import BinaryWriter

from . import pil


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


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, folder = task, pathlib.Path(task["work"]) / f"litdata-{task['set']}"
        write_chunks(folder, task["files"])
        self.stored = sorted(map(str, folder.glob("*.bin")))
        self.versions = {"litdata": litdata.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        data = Images(pil.Transform(task), str(folder), shuffle=task["transform"] == "train")
        self.loader = litdata.StreamingDataLoader(
            data, batch_size=task["batch"], num_workers=task["threads"], persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        return pil.check(self.task, self.task["files"])
