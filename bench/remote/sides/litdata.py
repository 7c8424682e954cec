# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks that its own writer makes, its defaults, a cache that is empty at every start."""

import os
import pathlib

import litdata
import PIL
import torch
from litdata.streaming.writer import BinaryWriter
from sides import pil

notes = ["downloads whole chunks of 64 MB to the local disk; by boto3, as obstore refuses http",
         "batch_decode=\"all\": with what it chooses by itself it reads a chunk again and again"]


def versions(_task):
    return {"litdata": litdata.__version__, "torch": torch.__version__, "pillow": PIL.__version__}


def prepare(task):
    out = pathlib.Path(task["out"])
    if (out / "index.json").exists():
        return
    writer = BinaryWriter(str(out), chunk_bytes="64MB")
    for i, file in enumerate(task["files"]):
        writer[i] = {"image": pathlib.Path(file).read_bytes(), "label": i}
    writer.done()
    writer.merge()


class Images(litdata.StreamingDataset):
    def __init__(self, pixels, *rest, **settings):
        super().__init__(*rest, **settings)
        self.pixels = pixels

    def __getitem__(self, i):
        item = super().__getitem__(i)
        return torch.from_numpy(self.pixels.pixels(bytes(item["image"]))), item["label"]


def batches(task):
    torch.set_num_threads(1)
    storage = {"endpoint_url": os.environ["AWS_ENDPOINT_URL"]}
    data = Images(pil.Transform(task), f"s3://{task['bucket']}/{task['prefix']}",
                  cache_dir=task["scratch"], shuffle=True, storage_options=storage,
                  batch_decode="all")
    loader = litdata.StreamingDataLoader(data, batch_size=task["batch"],
                                         num_workers=task["workers"])
    for _, ids in loader:
        yield ids.numpy()
