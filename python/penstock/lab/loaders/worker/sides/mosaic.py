# SPDX-License-Identifier: Apache-2.0
"""Mosaic Streaming: MDS shards on the local disk or in an object store, Pillow in worker
processes."""

import importlib.machinery
import os
import pathlib
import sys
import types

import PIL
import torch

from . import pil
from .store import Cache, folder_of


def stand_in_for_torchvision():
    """It is imported for datasets that are not used here, and its wheels do not load beside torch's
    CPU build; names that are only mentioned are enough."""
    for name in ("torchvision", "torchvision.datasets", "torchvision.transforms",
                 "torchvision.transforms.functional"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__, module.VisionDataset, module.to_tensor = [], object, None
        sys.modules[name] = module


try:
    import torchvision  # noqa: F401
except (ImportError, RuntimeError):
    stand_in_for_torchvision()

import streaming  # noqa: E402
from streaming import MDSWriter, StreamingDataset  # noqa: E402


def write_shards(folder, files):
    with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
        for i, file in enumerate(files):
            writer.write({"image": pathlib.Path(file).read_bytes(), "label": i})


class Images(StreamingDataset):
    def __init__(self, transform, **settings):
        super().__init__(**settings)
        self.transform = transform

    def __getitem__(self, i):
        item = super().__getitem__(i)
        return torch.from_numpy(self.transform.pixels(item["image"])), item["label"]


NOTES = ["downloads complete shards of 64 MB to the local disk",
         "its S3 client is closed before workers are forked: they would share its connection, mix "
         "up the responses, and wait 60 s for their first shard"]


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        streaming.base.util.clean_stale_shared_memory()
        self.task, folder = task, pathlib.Path(task["work"]) / f"mosaic-{task['set']}"
        if not (folder / "index.json").exists():
            write_shards(folder, task["files"])
        self.stored = sorted(map(str, folder.glob("*.mds")))
        self.versions = {"mosaicml-streaming": streaming.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        self.addresses, self.loader = task.get("addresses"), None
        if self.addresses:
            os.environ["S3_ENDPOINT_URL"] = os.environ["AWS_ENDPOINT_URL"]
            self.cache, self.notes = Cache(task["cache"]), NOTES
        else:
            self.loader = self.open(self.dataset(local=str(folder)), persistent_workers=True)

    def dataset(self, **where):
        return Images(pil.Transform(self.task), batch_size=self.task["batch"],
                      shuffle=self.task["transform"] == "train", **where)

    def remote(self):
        return self.dataset(remote=folder_of(self.addresses), local=self.cache.empty())

    def open(self, data, **more):
        return torch.utils.data.DataLoader(data, batch_size=self.task["batch"],
                                           num_workers=self.task["threads"], **more)

    def opened(self):
        """The dataset in the store, with new workers."""
        data = self.remote()
        for stream in data.streams:
            stream._downloader.clean_up()
        return self.open(data)

    def epoch(self):
        for _, ids in self.loader or self.opened():
            yield ids

    def check(self):
        if not self.addresses:
            return pil.check(self.task, self.task["files"])
        data, ids = self.remote(), [case["id"] for case in self.task["cases"]]
        read = StreamingDataset.__getitem__
        return pil.check(self.task, {i: read(data, i)["image"] for i in ids})
