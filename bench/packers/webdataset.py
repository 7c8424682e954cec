# SPDX-License-Identifier: Apache-2.0
"""WebDataset: each process writes tars of its own with ShardWriter and its defaults."""

import pathlib

import webdataset as wds

from packers.halves import Halves


def write_part(out, part, samples):
    with wds.ShardWriter(f"{out}/{part}-%06d.tar", verbose=0) as writer:
        for i, file in samples:
            writer.write({"__key__": f"{i:08}", "jpg": pathlib.Path(file).read_bytes(), "cls": i})


class Side:
    def __init__(self, task):
        self.out, self.halves = pathlib.Path(task["out"]), Halves(task)
        self.versions = {"webdataset": wds.__version__}

    def write(self):
        self.halves.write(write_part)

    def read(self):
        tars = sorted(map(str, self.out.glob("*.tar")))
        for sample in wds.WebDataset(tars, shardshuffle=False):
            yield int(sample["cls"]), sample["jpg"]
