# SPDX-License-Identifier: Apache-2.0
"""Columns of binary formats as fields: stored bytes are decoded, arrays get the type of a field."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._error import Error, InvalidError, UnsupportedError
from . import _arrays
from ._binary import parse_json
from ._columns import chosen, key_text, row_key
from ._reader import Choice


class Column(NamedTuple):
    """A column of a dataset.

    kind    the type of its field; "": that of the array in the first sample
    decode  makes the value from what is stored
    size    of the stored bytes, if it is the same for all samples
    refusal why it is not converted unless its type is given
    """

    name: str
    kind: str
    decode: Callable[[Any], Any]
    size: int | None = None
    refusal: str = ""


class Fields:
    """The columns that become fields, and the one that is the key."""

    def __init__(self, columns: Sequence[Column], kinds: dict[str, str], key: str | None) -> None:
        numbers = {column.name: i for i, column in enumerate(columns)}
        self.schema = kinds
        self._picked = [(numbers[name], columns[numbers[name]], kinds[name]) for name in kinds]
        self._key = (numbers[key], columns[numbers[key]]) if key else None

    def _row(self, values: Sequence[Any], key: str) -> tuple[str, dict[str, Any]]:
        row = {}
        for i, column, kind in self._picked:
            with _of_column(column.name):
                row[column.name] = _arrays.fitted(column.decode(values[i]), kind)
        if self._key is not None:
            i, column = self._key
            with _of_column(column.name):
                value = column.decode(values[i])
            key = key_text(column.name, value)
        return key, row

    def rows(
        self, path: str, part: int, row: int, samples: Iterable[tuple[int, Sequence[Any]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of samples, given as their places in a file and the stored values of all
        columns. part, row: the numbers of the first, for its key."""
        for place, values in samples:
            try:
                found = self._row(values, row_key(part, row))
            except Error as error:
                raise type(error)(f"{path}: byte {place}: {error}") from None
            yield found
            row += 1


@contextlib.contextmanager
def _of_column(name: str) -> Iterator[None]:
    """Errors in the block name the column."""
    try:
        yield
    except Error as error:
        raise type(error)(f"column {name!r}: {error}") from None


def _first_kind(source: str, column: Column, value: Any) -> str:
    """The type of a column that has an array in the first sample."""
    if column.refusal:
        raise UnsupportedError(f"{source}: column {column.name!r}: {column.refusal}")
    with _of_column(column.name):
        array = column.decode(value)
    return _arrays.type_of(array.dtype.name, array.shape)


def pick(
    source: str,
    columns: Sequence[Column],
    choice: Choice,
    first: Callable[[], Sequence[Any]],
) -> Fields:
    """The fields for a choice. `first` reads the stored values of the first sample."""
    found = {column.name: column.kind for column in columns}
    if len(found) != len(columns):
        raise InvalidError(f"{source}: expected columns with different names")
    kinds = chosen(source, found, choice)
    if "" in kinds.values():
        values = dict(zip(found, zip(columns, first())))
        kinds = {
            name: kind or _first_kind(source, *values[name]) for name, kind in kinds.items()
        }
    return Fields(columns, kinds, choice.key)


def json_bytes(data: bytes) -> bytes:
    """JSON as it is stored, after a check."""
    parse_json("JSON", data)
    return data


def pickled(name: str, size: int | None = None) -> Column:
    """A column of Python objects. They are never read: that can run any code."""
    refusal = (
        "it has pickled Python objects. Reading them can run any code. Choose other columns, or "
        'give it the type "bytes" to keep the pickles'
    )
    return Column(name, "", bytes, size, refusal)


def has_index(path: str, word: str) -> bool:
    """True for a folder whose index.json has this word near its beginning."""
    index = os.path.join(path, "index.json")
    try:
        if not os.path.isfile(index):  # a pipe would block
            return False
        with open(index, "rb") as file:
            return word.encode() in file.read(4096)
    except OSError:
        return False
