# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face `datasets`: folders of save_to_disk, Arrow files, and Parquet files. The
library itself is not needed. A record batch is a part."""

from __future__ import annotations

import builtins
import glob
import json
import os
from collections.abc import Iterator
from typing import Any

from .. import _check
from .._error import InvalidError, NotFoundError
from . import _arrow, _columns, parquet
from ._reader import Choice, Reader

SUFFIX = ".arrow"
STATE, SPLITS = "state.json", "dataset_dict.json"
JSON_BYTES = 64 << 20
FILE_START = b"ARROW1"


def recognise(source: str) -> bool:
    marks = (os.path.join(source, name) for name in (STATE, SPLITS))
    return source.endswith(SUFFIX) or any(os.path.isfile(mark) for mark in marks)


def open(source: str, choice: Choice) -> Reader:
    _columns.need("pyarrow", source)
    if not recognise(source):
        return parquet.open(source, choice)
    return ArrowReader(source, choice)


def _read_json(path: str) -> Any:
    with _arrow.reading(path):
        if os.path.getsize(path) > JSON_BYTES:
            raise InvalidError(f"{path}: expected at most 64 MiB")
        with builtins.open(path, "rb") as file:
            return json.load(file)


def _refuse_splits(source: str) -> None:
    path = os.path.join(source, SPLITS)
    if os.path.isfile(path):
        splits = _read_json(path)
        names = splits.get("splits") if isinstance(splits, dict) else None
        names = [str(name) for name in names] if isinstance(names, list) and names else ["train"]
        raise InvalidError(
            f"{source}: expected one split, found {', '.join(names[:10])}; convert each alone, "
            f"for example '{os.path.join(source, names[0])}'"
        )


def _files_of(source: str) -> list[str]:
    _refuse_splits(source)
    if not os.path.isdir(source):
        found = [source] if os.path.exists(source) else sorted(glob.glob(source, recursive=True))
        if not found:
            raise NotFoundError(f"{source}: no {SUFFIX} file found")
        return found
    state = os.path.join(source, STATE)
    with _arrow.reading(state):
        names = [file["filename"] for file in _read_json(state)["_data_files"]]
    for name in names:
        if not isinstance(name, str) or os.path.basename(name) != name or not name:
            raise InvalidError(f"{state}: expected names of files, found {_check.shown(name)}")
    return [os.path.join(source, name) for name in names]


class _Batches:
    """The record batches of an Arrow file or stream, which is mapped into memory."""

    def __init__(self, path: str) -> None:
        import pyarrow

        data = pyarrow.memory_map(path)
        is_file = data.read(len(FILE_START)) == FILE_START
        data.seek(0)
        source = pyarrow.ipc.open_file(data) if is_file else pyarrow.ipc.open_stream(data)
        self.schema = source.schema
        self.next = 0
        self._batches = _of_file(source) if is_file else iter(source)

    def read(self) -> Any:
        """The next record batch, or None."""
        batch = next(self._batches, None)
        if batch is not None:
            batch.validate()  # buffers of a malformed file could be shorter than it states
            self.next += 1
        return batch


def _of_file(source: Any) -> Iterator[Any]:
    return (source.get_batch(i) for i in range(source.num_record_batches))


class ArrowReader(_arrow.TableReader):
    def __init__(self, source: str, choice: Choice) -> None:
        self._files = _files_of(source)
        self._parts = []  # file and record batch
        self._nulls: dict[str, bool] = {}
        self._last: tuple[int, _Batches] | None = None
        self.part_rows: list[int] = []
        for number in range(len(self._files)):
            self._add(number)
        if not self._files:
            raise InvalidError(f"{source}: the dataset has no files")
        self._table = _arrow.Table(source, self._schema, choice, self._nulls.get, self._first)

    def _add(self, number: int) -> None:
        """Add the record batches of a file."""
        with _arrow.reading(self._files[number]):
            batches = _Batches(self._files[number])
            if number == 0:
                self._schema = batches.schema
            if not self._schema.equals(batches.schema):
                raise InvalidError(
                    f"{self._files[number]}: the columns differ from those in {self._files[0]}"
                )
            while (batch := batches.read()) is not None:
                self._parts.append((number, batches.next - 1))
                self.part_rows.append(batch.num_rows)
                for name, column in zip(batch.schema.names, batch.columns):
                    self._nulls[name] = self._nulls.get(name, False) or column.null_count > 0

    def _batch(self, part: int) -> Any:
        """The file that was read last stays open: the next part is usually its next batch."""
        number, wanted = self._parts[part]
        if self._last is None or self._last[0] != number or self._last[1].next > wanted:
            self._last = number, _Batches(self._files[number])
        batches = self._last[1]
        for _ in range(wanted - batches.next):
            batches.read()
        batch = batches.read()
        if batch is None:
            raise InvalidError(f"{self._files[number]}: the file was changed while it was read")
        batch.validate(full=True)  # offsets of a malformed file could point anywhere
        return batch

    def _first(self, name: str) -> Any:
        with _arrow.reading(self._files[0]):
            column = self._batch(0).column(name) if self._parts else ()
            return next((value.as_py() for value in column if value.is_valid), None)

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        with _arrow.reading(self._files[self._parts[part][0]]):
            yield from self._table.rows(self._batch(part), part, 0)
