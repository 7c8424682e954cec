# SPDX-License-Identifier: Apache-2.0
"""Lance: each process writes fragments; one commit makes them a dataset."""

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from packers import rows
from packers.halves import Halves


def write_part(out, _part, samples):
    batches = pa.RecordBatchReader.from_batches(rows.SCHEMA, rows.batches_of(samples))
    return write_fragments(batches, out, schema=rows.SCHEMA)


class Side:
    def __init__(self, task):
        self.out, self.halves = task["out"], Halves(task, "spawn")  # it has threads
        self.versions = {"pylance": lance.__version__}

    def write(self):
        fragments = [one for part in self.halves.write(write_part) for one in part]
        lance.LanceDataset.commit(self.out, lance.LanceOperation.Overwrite(rows.SCHEMA, fragments))

    def read(self):
        return rows.samples_of(lance.dataset(self.out).to_batches())
