# SPDX-License-Identifier: Apache-2.0
"""LitData: optimize(), which starts its own processes; chunks of 64 MB. They are forked, because a
process that is spawned, its default, imports torch first, which takes seconds."""

import pathlib

import litdata


def sample_of(numbered):
    i, file = numbered
    return {"image": pathlib.Path(file).read_bytes(), "label": i}


class Side:
    def __init__(self, task):
        self.task, self.versions = task, {"litdata": litdata.__version__}

    def write(self):
        litdata.optimize(fn=sample_of, inputs=list(enumerate(self.task["files"])),
                         output_dir=self.task["out"], chunk_bytes="64MB",
                         num_workers=self.task["processes"], start_method="fork", verbose=False)

    def read(self):
        for sample in litdata.StreamingDataset(self.task["out"], shuffle=False):
            yield int(sample["label"]), bytes(sample["image"])
