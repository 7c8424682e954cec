# SPDX-License-Identifier: Apache-2.0
"""Lance: a dataset on the local disk, rows in random order, Pillow in worker processes. They are
spawned, because Lance has threads; so what they run is at the top of this module."""

import pathlib

import lance
import PIL
import pyarrow as pa
import torch
from lance.torch.data import SafeLanceDataset, get_safe_loader

from . import pil

ROWS = 256  # of a record batch
SCHEMA = pa.schema([("image", pa.binary()), ("label", pa.int64())])


def batches_of(files):
    for first in range(0, len(files), ROWS):
        some = files[first : first + ROWS]
        yield pa.record_batch([[pathlib.Path(file).read_bytes() for file in some],
                               list(range(first, first + len(some)))], schema=SCHEMA)


class Collate:
    def __init__(self, task):
        self.transform = pil.Transform(task)

    def __call__(self, rows):
        images = [torch.from_numpy(self.transform.pixels(bytes(row["image"]))) for row in rows]
        return torch.stack(images), torch.tensor([row["label"] for row in rows])


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        self.task, folder = task, pathlib.Path(task["work"]) / f"lance-{task['set']}.lance"
        if not folder.exists():
            half = folder.with_suffix(".half")
            lance.write_dataset(batches_of(task["files"]), str(half), schema=SCHEMA,
                                mode="overwrite")
            half.rename(folder)
        self.stored = sorted(str(file) for file in folder.rglob("*") if file.is_file())
        self.versions = {"pylance": lance.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        small = {key: task[key] for key in ("size", "short", "transform")}
        self.loader = get_safe_loader(
            SafeLanceDataset(str(folder)), batch_size=task["batch"], num_workers=task["threads"],
            shuffle=task["transform"] == "train", collate_fn=Collate(small),
            persistent_workers=True)

    def epoch(self):
        for _, ids in self.loader:
            yield ids

    def check(self):
        return pil.check(self.task, self.task["files"])
