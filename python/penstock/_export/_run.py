# SPDX-License-Identifier: Apache-2.0
"""Write samples of a pack in the format of another library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from .._error import CorruptError, DecodeError, Error, InvalidError, LimitError, UnsupportedError
from .._pack import Pack
from . import parquet, webdataset
from ._folder import Folder

# Failures of one sample that do not affect others.
_OF_SAMPLE = (InvalidError, CorruptError, DecodeError, UnsupportedError, LimitError)


class Format(Protocol):
    n_bytes: int  # of the samples written

    def add(self, number: int) -> None:
        """Write a sample. If it raises one of _OF_SAMPLE, nothing of the sample is written."""

    def close(self) -> None: ...


FORMATS: dict[str, Callable[[Pack, Folder, int], Format]] = {
    "webdataset": webdataset.Tars,
    "parquet": parquet.Tables,
}


class Result(NamedTuple):
    samples: int
    failed: int
    files: int
    n_bytes: int


def run(
    pack: Pack,
    out: str,
    format: str,
    ranges: Sequence[range],
    shard_bytes: int,
    on_failed: Callable[[int, Error], object],
    progress: Callable[[int, int, int], object] | None,
) -> Result:
    """on_failed(sample, error) is called for samples that are left out, and progress(samples,
    failed, bytes) for every sample."""
    done = failed = 0
    with Folder(out) as folder:
        writer = FORMATS[format](pack, folder, shard_bytes)
        for number in (number for one in ranges for number in one):
            try:
                writer.add(number)
                done += 1
            except _OF_SAMPLE as error:
                failed += 1
                on_failed(number, error)
            if progress is not None:
                progress(done, failed, writer.n_bytes)
        writer.close()
    return Result(done, failed, folder.files, folder.n_bytes)
