# SPDX-License-Identifier: Apache-2.0
"""Chunks of samples, as Mosaic Streaming and LitData write them.

A chunk: the number n of samples (32 bits), n + 1 offsets (32 bits), in MDS a JSON text, the
samples. A sample: the sizes (32 bits) of values of variable size, then the values in the order of
the columns. All numbers are little-endian.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .._error import InvalidError
from . import _binary
from ._binary import File
from ._fields import Column, pick
from ._reader import Choice


class Chunk(NamedTuple):
    """A file of samples; `bytes` is its size once it is decompressed."""

    path: str
    compression: str | None
    bytes: int
    samples: int


def read_index(source: str, name: str) -> tuple[str, dict[str, Any], list[Any]]:
    """The path of index.json, its content, and the list of this name in it."""
    index = os.path.join(source, "index.json")
    found = _binary.read_json(index)
    parts = found.get(name) if isinstance(found, dict) else None
    if not isinstance(parts, list) or not parts:
        raise InvalidError(f"{index}: expected a list of {name}, found none")
    return index, found, parts


def _table(file: File, n: int) -> Sequence[int]:
    """The offsets: where samples begin and end. They ascend and are inside the file."""
    low = 4 + 4 * (n + 1)
    offsets = file.numbers(4, n + 1, f"the offsets of {n} samples")
    for i, offset in enumerate(offsets):
        if not low <= offset <= file.size:
            raise _binary.invalid(
                file.path, 4 + 4 * i, f"expected an offset of {low} to {file.size}, found {offset}"
            )
        low = offset
    return offsets


def _split(file: File, begin: int, end: int, columns: Sequence[Column]) -> list[bytes]:
    """The stored values of a sample."""
    data = file.read(begin, end - begin, "a sample")
    n = sum(not column.size for column in columns)
    if len(data) < 4 * n:
        raise _binary.invalid(file.path, begin, f"expected {n} sizes, found {len(data)} bytes")
    sizes = iter(struct.unpack_from(f"<{n}I", data))
    at, values = 4 * n, []
    for column in columns:
        size = column.size or next(sizes)
        values.append(data[at : at + size])
        at += size
    if at != len(data):
        raise _binary.invalid(
            file.path, begin, f"expected a sample of {at} bytes, found {len(data)}"
        )
    return values


class Reader:
    """The chunks are its parts. Keys are numbers, or a column."""

    def __init__(
        self,
        source: str,
        chunks: Sequence[Chunk],
        columns: Sequence[Column],
        choice: Choice,
    ) -> None:
        self._source = source
        self._chunks = chunks
        self._columns = columns
        self.classes: Sequence[str] = ()
        self.class_field = choice.label
        self.parts = len(chunks)
        self.part_rows = [chunk.samples for chunk in chunks]
        self._fields = pick(source, columns, choice, self._first)
        self.schema = self._fields.schema

    def _first(self) -> list[bytes]:
        for part in range(self.parts):
            for _, values in self._values(part):
                return values
        raise InvalidError(f"{self._source}: expected samples, found none")

    def _file(self, chunk: Chunk) -> Any:
        if chunk.compression is None:
            return _binary.opened(chunk.path)
        return _binary.decompressed(chunk.path, chunk.compression, chunk.bytes)

    def _values(self, part: int) -> Iterator[tuple[int, list[bytes]]]:
        """The place and the stored values of every sample."""
        chunk = self._chunks[part]
        with self._file(chunk) as file:
            (n,) = file.numbers(0, 1, "the number of samples")
            if n != chunk.samples:
                raise _binary.invalid(
                    file.path, 0, f"expected {chunk.samples} samples, as the index says, found {n}"
                )
            offsets = _table(file, n)
            for begin, end in itertools.pairwise(offsets):
                yield begin, _split(file, begin, end, self._columns)

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self._fields.rows(self._chunks[part].path, part, 0, self._values(part))


# ---- values that both formats have


def scalar(code: str) -> Callable[[bytes], Any]:
    """Decodes a number, with a code of `struct`."""
    size = struct.calcsize(f"<{code}")

    def decode(data: bytes) -> Any:
        if len(data) != size:
            raise InvalidError(f"expected a number of {size} bytes, found {len(data)}")
        return struct.unpack(f"<{code}", data)[0]

    return decode


def images(data: bytes, at: int = 0) -> list[bytes]:
    """A list of files: their number at `at`, their sizes (32 bits), the files."""
    n = struct.unpack_from("<I", data, at)[0] if len(data) >= at + 4 else -1
    begin = at + 4 + 4 * n
    if n < 0 or begin > len(data):
        raise InvalidError(f"expected a list of images, found {len(data)} bytes")
    sizes = struct.unpack_from(f"<{n}I", data, at + 4)
    if begin + sum(sizes) != len(data):
        raise InvalidError(f"expected {begin + sum(sizes)} bytes of {n} images, found {len(data)}")
    found = []
    for size in sizes:
        found.append(data[begin : begin + size])
        begin += size
    return found
