# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tars of samples, Pillow in worker processes. From an object store, it runs curl."""

import PIL
import torch
import webdataset as wds

from . import pil
from .store import url_of
from .tars import tars_of


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, self.stored = task, tars_of(task)
        self.versions = {"webdataset": wds.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        transform, train = pil.Transform(task), task["transform"] == "train"

        def sample(item):
            return torch.from_numpy(transform.pixels(item["jpg"])), int(item["cls"])

        self.tars = [url_of(address) for address in task.get("addresses", [])] or self.stored
        data = wds.WebDataset(self.tars, shardshuffle=100 if train else False)
        if train:
            data = data.shuffle(500)
        data = data.map(sample).batched(task["batch"])
        self.loader = wds.WebLoader(data, batch_size=None, num_workers=task["threads"],
                                    persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        if self.tars is self.stored:
            return pil.check(self.task, self.task["files"])
        wanted = {case["id"] for case in self.task["cases"]}
        samples = wds.WebDataset(self.tars, shardshuffle=False)
        found = {int(item["cls"]): item["jpg"] for item in samples if int(item["cls"]) in wanted}
        return pil.check(self.task, found)
