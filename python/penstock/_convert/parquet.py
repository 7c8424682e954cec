# SPDX-License-Identifier: Apache-2.0
"""Parquet files, also those of Hugging Face datasets. A row group is a part."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._error import InvalidError, NotFoundError
from . import _arrow, _columns
from ._reader import Choice

SUFFIX = ".parquet"
ROWS = 1024  # at most in a record batch
LOOK_ROWS = 100  # of the first row group, to find out whether binary columns are images
_SPLIT = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")


def recognise(source: str) -> bool:
    if source.endswith(SUFFIX):
        return True
    return os.path.isdir(source) and next(_below(source), None) is not None


def _below(folder: str) -> Iterator[str]:
    """Without hidden names. Links to folders are not followed: they could lead back."""
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield os.path.join(top, name)


def files_of(source: str) -> list[str]:
    """The files of a path, a folder or a pattern, sorted by name."""
    if os.path.isdir(source):
        found = sorted(_below(source))
        _check_splits(source, found)
    else:
        found = [source] if os.path.exists(source) else sorted(glob.glob(source, recursive=True))
    if not found:
        raise NotFoundError(f"{source}: no {SUFFIX} file found")
    return found


def _check_splits(source: str, files: Sequence[str]) -> None:
    """A folder of a Hugging Face dataset can have files of several splits."""
    matches = [_SPLIT.fullmatch(os.path.basename(file)) for file in files]
    splits = sorted({match[1] for match in matches if match})
    if len(splits) > 1:
        folder = os.path.dirname(files[0])
        raise InvalidError(
            f"{source}: expected one split, found {', '.join(splits[:10])}; convert each alone, "
            f"for example '{folder}/{splits[-1]}-*{SUFFIX}'"
        )


def open(source: str, choice: Choice) -> ParquetReader:
    _columns.need("pyarrow.parquet", source)
    return ParquetReader(source, choice)


class ParquetReader(_arrow.TableReader):
    def __init__(self, source: str, choice: Choice) -> None:
        self._files = files_of(source)
        self._parts = []  # file and row group
        self._nulls: dict[str, bool | None] = {}  # only of columns that are not nested
        self._different: dict[str, str] = {}  # column to the first file in which it is not the same
        self.part_rows: list[int] = []
        self._open_file: tuple[int, Any] | None = None
        for number in range(len(self._files)):
            self._add(number)
        self._table = _arrow.Table(source, self._schema, choice, self._has_nulls, self._first)
        for name in self._table.columns:
            if name in self._different:
                raise InvalidError(
                    f"{self._different[name]}: column {name!r} has another type than in "
                    f"{self._files[0]}, or is missing; leave it out with columns= or --columns"
                )

    def _file(self, number: int) -> Any:
        """The file that was used last stays open."""
        import pyarrow.parquet

        if self._open_file is None or self._open_file[0] != number:
            # Without buffers of entire column chunks, and without threads that read in advance.
            file = pyarrow.parquet.ParquetFile(
                self._files[number], buffer_size=1 << 18, pre_buffer=False
            )
            self._open_file = number, file
        return self._open_file[1]

    def _add(self, number: int) -> None:
        """Add the row groups of a file."""
        with _arrow.reading(self._files[number]):
            file = self._file(number)
            schema, metadata = file.schema_arrow, file.metadata
            if number == 0:
                self._schema = schema
            for field in {*self._schema, *schema}:
                if {field} != {*_fields(self._schema, field.name), *_fields(schema, field.name)}:
                    self._different.setdefault(field.name, self._files[number])
            for group in range(metadata.num_row_groups):
                self._parts.append((number, group))
                self.part_rows.append(metadata.row_group(group).num_rows)
                self._count_nulls(metadata.row_group(group))

    def _count_nulls(self, group: Any) -> None:
        for i in range(group.num_columns):
            column = group.column(i)
            known = column.is_stats_set and column.statistics.has_null_count
            nulls = column.statistics.null_count > 0 if known else None
            seen = self._nulls.get(column.path_in_schema, False)
            self._nulls[column.path_in_schema] = True if seen else nulls if seen is False else None

    def _has_nulls(self, name: str) -> bool | None:
        return self._nulls.get(name)

    def _batches(self, part: int, columns: Sequence[str], rows: int) -> Iterator[Any]:
        number, group = self._parts[part]
        file = self._file(number)
        return iter(
            file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
        )

    def _first(self, name: str) -> Any:
        if not self._parts:
            return None
        with _arrow.reading(self._files[0]):
            seen = 0
            for batch in self._batches(0, [name], 1):
                value = batch.column(0)[0].as_py()
                seen += 1
                if value is not None or seen == LOOK_ROWS:
                    return value
        return None

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        number, group = self._parts[part]
        start = 0
        with _arrow.reading(self._files[number]):
            sizes = self._file(number).metadata.row_group(group)
            row_bytes = sizes.total_byte_size // max(sizes.num_rows, 1)
            n = min(ROWS, max(1, _arrow.BATCH_BYTES // max(row_bytes, 1)))
            for batch in self._batches(part, self._table.columns, n):
                yield from self._table.rows(batch, part, start)
                start += batch.num_rows


def _fields(schema: Any, name: str) -> list[Any]:
    return [schema.field(i) for i in schema.get_all_field_indices(name)] or [None]
