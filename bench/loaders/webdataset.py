# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tars of samples, Pillow in worker processes."""

import pathlib

import PIL
import torch
import webdataset as wds

from loaders import pil

SHARDS_PER_WORKER = 4


def write_tars(folder, task):
    per_shard = -(-len(task["files"]) // (SHARDS_PER_WORKER * task["threads"]))
    folder.mkdir(parents=True)
    with wds.ShardWriter(f"{folder}/%06d.tar", maxcount=per_shard, verbose=0) as writer:
        for i, file in enumerate(task["files"]):
            jpeg = pathlib.Path(file).read_bytes()
            writer.write({"__key__": f"{i:08}", "jpg": jpeg, "cls": i})
    (folder / "done").touch()


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, folder = task, pathlib.Path(task["work"]) / f"webdataset-{task['set']}"
        if not (folder / "done").exists():
            write_tars(folder, task)
        self.stored = sorted(map(str, folder.glob("*.tar")))
        self.versions = {"webdataset": wds.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        transform, train = pil.Transform(task), task["transform"] == "train"

        def sample(item):
            return torch.from_numpy(transform.pixels(item["jpg"])), int(item["cls"])

        data = wds.WebDataset(self.stored, shardshuffle=100 if train else False)
        if train:
            data = data.shuffle(500)
        data = data.map(sample).batched(task["batch"])
        self.loader = wds.WebLoader(data, batch_size=None, num_workers=task["threads"],
                                    persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        return pil.check(self.task, self.task["files"])
