# SPDX-License-Identifier: Apache-2.0
"""penstock as the data loader of DLIO, the benchmark program of MLPerf Storage.

    PENSTOCK_DLIO_PACK=photos.pen dlio_benchmark workload=resnet50_h100 \\
        ++workload.reader.data_loader_classname=penstock.lab.dlio.PenstockDataLoader \\
        ++workload.reader.data_loader_sampler=iterative

DLIO must be installed: dlio-benchmark imports this module, nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from dlio_benchmark.common.enumerations import DataLoaderType, DatasetType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader

import penstock

from .errors import LabError

PACK, EVAL_PACK = "PENSTOCK_DLIO_PACK", "PENSTOCK_DLIO_EVAL_PACK"
PIPELINE = "PENSTOCK_DLIO_PIPELINE"
DEFAULT_PIPELINE = "decode | random_resized_crop 224 | hflip | tensor u8"


class PenstockDataLoader(BaseDataLoader):  # type: ignore[misc]
    """Reads the pack of $PENSTOCK_DLIO_PACK with the batch size, the threads, the seed and the
    shuffling of the workload. Batches are arrays in shared memory; DLIO does not use their
    content."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)
        self._loader: penstock.Loader | None = None

    def read(self) -> None:
        """DLIO calls it before each epoch; the loader lives as long as the run."""
        if self._loader is None:
            self._loader = self._open()
        self._loader.set_epoch(self.epoch_number)

    def _open(self) -> penstock.Loader:
        training = self.dataset_type is DatasetType.TRAIN
        name = PACK if training else EVAL_PACK
        pack = os.environ.get(name)
        if not pack:
            raise LabError(f"DLIO has no pack to read: set ${name} to the path or URL of a pack")
        loader = penstock.Loader(
            pack, self.batch_size, shuffle=self._args.sample_shuffle != Shuffle.OFF,
            seed=self._args.seed, drop_last=True, threads=self._args.read_threads or None,
            prefetch=self._args.prefetch_size or None, output="dlpack",
            pipeline=os.environ.get(PIPELINE, DEFAULT_PIPELINE),
            rank=self._args.my_rank, world_size=self._args.comm_size)
        found = len(loader.dataset)
        if found < self.num_samples:
            raise LabError(f"pack '{pack}' has {found} samples, and the workload reads "
                           f"{self.num_samples}: set dataset.num_files_train to the number of "
                           "samples, and num_samples_per_file to 1")
        return loader

    def next(self) -> Iterator[Any]:
        if self._loader is None:
            self.read()
        assert self._loader is not None
        yield from self._loader
        self.epoch_number += 1

    def finalize(self) -> None:
        if self._loader is not None:
            self._loader.close()
            self._loader = None
