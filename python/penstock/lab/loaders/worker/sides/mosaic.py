# SPDX-License-Identifier: Apache-2.0
"""Mosaic Streaming: MDS shards on the local disk, Pillow in worker processes."""

import importlib.machinery
import pathlib
import sys
import types

import PIL
import torch

from . import pil


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
        data = Images(pil.Transform(task), local=str(folder), batch_size=task["batch"],
                      shuffle=task["transform"] == "train")
        self.loader = torch.utils.data.DataLoader(
            data, batch_size=task["batch"], num_workers=task["threads"], persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        return pil.check(self.task, self.task["files"])
