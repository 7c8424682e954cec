# SPDX-License-Identifier: Apache-2.0
"""Mosaic Streaming: each process writes a folder of MDS shards; merge_index makes them one set."""

import pathlib

from sides.mosaic import streaming
from streaming.base.util import clean_stale_shared_memory, merge_index

from packers.halves import Halves


def write_part(out, part, samples):
    columns = {"image": "bytes", "label": "int"}
    with streaming.MDSWriter(out=f"{out}/{part}", columns=columns) as writer:
        for i, file in samples:
            writer.write({"image": pathlib.Path(file).read_bytes(), "label": i})


class Side:
    def __init__(self, task):
        self.out, self.halves = task["out"], Halves(task)
        self.versions = {"mosaicml-streaming": streaming.__version__}

    def write(self):
        self.halves.write(write_part)
        merge_index(self.out)

    def read(self):
        clean_stale_shared_memory()
        for sample in streaming.StreamingDataset(local=self.out, shuffle=False, batch_size=1):
            yield int(sample["label"]), sample["image"]
