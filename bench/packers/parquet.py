# SPDX-License-Identifier: Apache-2.0
"""Parquet by pyarrow: a file for each process, without compression and dictionaries, which cost
time and hardly make JPEG files smaller."""

import pathlib

import pyarrow as pa
from pyarrow import parquet

from packers import rows
from packers.halves import Halves

SETTINGS = {"compression": "none", "use_dictionary": False, "write_statistics": False}


def write_part(out, part, samples):
    with parquet.ParquetWriter(f"{out}/{part}.parquet", rows.SCHEMA, **SETTINGS) as writer:
        for batch in rows.batches_of(samples):
            writer.write_batch(batch)


class Side:
    def __init__(self, task):
        self.out, self.halves = pathlib.Path(task["out"]), Halves(task, "spawn")  # it has threads
        self.versions = {"pyarrow": pa.__version__}

    def write(self):
        self.halves.write(write_part)

    def read(self):
        for path in sorted(self.out.glob("*.parquet")):
            yield from rows.samples_of(parquet.ParquetFile(path).iter_batches(rows.ROWS))
