# SPDX-License-Identifier: Apache-2.0
"""Mosaic Streaming: MDS shards in the store, its defaults, a cache that is empty at every start."""

import os
import pathlib

import PIL
import torch
from sides import mosaic, pil

notes = ["downloads whole shards of 64 MB to the local disk",
         "its S3 client is dropped before workers are forked: they would share its connection, mix "
         "up the answers, and wait 60 s for their first shard"]


def versions(_task):
    return {"mosaicml-streaming": mosaic.streaming.__version__, "torch": torch.__version__,
            "pillow": PIL.__version__}


def prepare(task):
    out = pathlib.Path(task["out"])
    if not (out / "index.json").exists():
        mosaic.write_shards(out, task["files"])


def batches(task):
    torch.set_num_threads(1)
    os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
    mosaic.streaming.base.util.clean_stale_shared_memory()
    data = mosaic.Images(pil.Transform(task), remote=f"s3://{task['bucket']}/{task['prefix']}",
                         local=task["scratch"], batch_size=task["batch"], shuffle=True)
    for stream in data.streams:
        stream._downloader.clean_up()
    loader = torch.utils.data.DataLoader(data, batch_size=task["batch"],
                                         num_workers=task["workers"])
    for _, ids in loader:
        yield ids.numpy()
