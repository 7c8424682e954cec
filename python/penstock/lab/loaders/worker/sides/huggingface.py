# SPDX-License-Identifier: Apache-2.0
"""Hugging Face datasets: Parquet files that are streamed, Pillow in DataLoader's workers."""

import pathlib

import datasets
import PIL
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from . import pil

FILES_PER_WORKER, SHUFFLE_BUFFER = 4, 500


def write_parquet(folder, files, n_files):
    """Made once; every worker reads files of its own."""
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        each = -(-len(files) // n_files)
        for first in range(0, len(files), each):
            some = files[first : first + each]
            table = pa.table({"image": [pathlib.Path(file).read_bytes() for file in some],
                              "label": list(range(first, first + len(some)))})
            pq.write_table(table, folder / f"{first // each:04}.parquet", compression="none")
        (folder / "done").touch()
    return sorted(map(str, folder.glob("*.parquet")))


class Map:
    def __init__(self, task):
        self.transform = pil.Transform(task)

    def __call__(self, row):
        return {"pixels": self.transform.pixels(row["image"]), "label": row["label"]}


def collate(rows):
    images = [torch.from_numpy(row["pixels"]) for row in rows]
    return torch.stack(images), torch.tensor([row["label"] for row in rows])


class Side:
    notes = [f"shuffles files, and rows in a buffer of {SHUFFLE_BUFFER}",
             "max_buffer_input_shards=1: its default sleeps 5 s at the end of an epoch"]

    def __init__(self, task):
        torch.set_num_threads(1)
        self.task = task
        folder = pathlib.Path(task["work"]) / f"parquet-{task['set']}-{task['threads']}"
        self.stored = write_parquet(folder, task["files"], FILES_PER_WORKER * task["threads"])
        self.versions = {"datasets": datasets.__version__, "torch": torch.__version__,
                         "pillow": PIL.__version__}
        data = datasets.load_dataset("parquet", data_files=self.stored, split="train",
                                     streaming=True)
        if task["transform"] == "train":
            data = data.shuffle(seed=task["seed"], buffer_size=SHUFFLE_BUFFER,
                                max_buffer_input_shards=1)
        self.data = data.map(Map(task), remove_columns=["image"])
        self.loader = torch.utils.data.DataLoader(
            self.data, batch_size=task["batch"], num_workers=task["threads"], collate_fn=collate,
            persistent_workers=True)
        self.passes = 0

    def epoch(self):
        self.data.set_epoch(self.passes)
        self.passes += 1
        for _, ids in self.loader:
            yield ids

    def check(self):
        return pil.check(self.task, self.task["files"])
