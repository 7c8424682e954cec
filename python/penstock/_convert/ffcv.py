# SPDX-License-Identifier: Apache-2.0
"""FFCV's .beton files.

A header, a descriptor of 1041 bytes for each field, the metadata of all samples as an array of
structures, pages of data, and the table of allocations: sample, position and size (64 bits each).
Everything is little-endian. Metadata of a field is a number, or the position of its data.
"""

from __future__ import annotations

import bisect
import functools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .._error import InvalidError, LimitError, UnsupportedError
from . import _binary
from ._arrays import array_of, type_of
from ._binary import MAX_VALUE, File
from ._fields import Column, json_bytes, pick
from ._pixels import numpy, png
from ._reader import Choice

_VERSION = 2
_HEADER = 24  # version u16, fields u16, page size u32, samples u64, table of allocations u64
_DESCRIPTOR = 1041  # type u8, name of 16 bytes, arguments of 1024 bytes
_MAX_FIELDS = 1000
_MAX_ALLOCATIONS = 1 << 28
_PART = 4096  # samples
_JPG, _RAW = 0, 1


class _Beton:
    """An open file: the positions and sizes that its table of allocations has."""

    def __init__(self, file: File, places: Sequence[int], sizes: Sequence[int]) -> None:
        self.file = file
        self._places = places
        self._sizes = sizes

    def allocated(self, place: int, what: str) -> bytes:
        """Data of which only the table of allocations has the size."""
        i = bisect.bisect_left(self._places, place)
        if i == len(self._places) or self._places[i] != place:
            raise InvalidError(f"{what} at byte {place} is not in the table of allocations")
        return self.file.read(place, int(self._sizes[i]), what)


# How the value of a field is read: from the file and the numbers in the metadata.
_Read = Callable[[_Beton, Sequence[Any]], Any]


class _Field(NamedTuple):
    """size, alignment, code: of the field in the metadata; the code is one of `struct`."""

    name: str
    kind: str
    size: int
    alignment: int
    code: str
    read: _Read


def _number(beton: _Beton, values: Sequence[Any]) -> Any:
    return values[0]


def _image(beton: _Beton, values: Sequence[Any]) -> bytes:
    mode, width, height, place = values
    if mode == _JPG:
        return beton.allocated(place, "a JPEG")
    if mode != _RAW:
        raise InvalidError(f"expected an image of mode 0 or 1, found {mode}")
    return png(beton.file.read(place, 3 * width * height, "pixels"), width, height, "RGB")


def _bytes(beton: _Beton, values: Sequence[Any]) -> bytes:
    return beton.file.read(values[0], values[1], "bytes")


def _json(beton: _Beton, values: Sequence[Any]) -> bytes:
    text, end, _ = _bytes(beton, values).partition(b"\0")
    if not end:
        raise InvalidError("expected JSON that ends in a null byte")
    return json_bytes(text)


def _array(dtype: str, shape: Sequence[int], size: int) -> _Read:
    return lambda beton, values: array_of(
        beton.file.read(values[0], size, "an array"), dtype, shape
    )


def _array_field(path: str, name: str, arguments: bytes) -> _Field:
    """32 dimensions (64 bits, 0 when not used), the length of a JSON text, the text: [["",
    "<f4"]]."""
    np = numpy()
    numbers = struct.unpack_from("<33Q", arguments)
    shape = tuple(n for n in numbers[:32] if n)
    text = arguments[264 : 264 + min(numbers[32], 760)]
    described = _binary.parse_json(path, text)
    try:
        dtype = np.dtype(str(described[0][1]))
        size = math.prod(shape) * dtype.itemsize
    except (TypeError, ValueError, LookupError):
        raise InvalidError(f"{path}: field {name!r}: unknown type {described!r:.60}") from None
    if dtype.kind not in "buif" or dtype.byteorder == ">" or size > MAX_VALUE:
        raise UnsupportedError(
            f"{path}: field {name!r}: arrays of {dtype} and {size} bytes are not supported"
        )
    kind = type_of(dtype.name, shape)
    return _Field(name, kind, 8, 8, "Q", _array(dtype.name, shape, size))


def _field(path: str, descriptor: bytes) -> _Field:
    number = descriptor[0]
    name = descriptor[1:17].partition(b"\0")[0].decode("ascii", "replace")
    if number in (4, 6):  # NDArrayField, TorchTensorField
        return _array_field(path, name, descriptor[17:])
    fields = {
        0: _Field(name, "f64", 8, 8, "d", _number),
        1: _Field(name, "i64", 8, 8, "q", _number),
        2: _Field(name, "image", 13, 1, "BHHQ", _image),
        3: _Field(name, "bytes", 16, 1, "QQ", _bytes),
        5: _Field(name, "json", 16, 1, "QQ", _json),
    }
    if number not in fields:
        raise UnsupportedError(f"{path}: field {name!r}: the type {number} is not supported")
    return fields[number]


def _layout(fields: Sequence[_Field]) -> tuple[list[int], int]:
    """The offsets of the fields in a structure of metadata, as NumPy aligns them, and its size."""
    at, offsets = 0, []
    for field in fields:
        at = -(-at // field.alignment) * field.alignment
        offsets.append(at)
        at += field.size
    whole = max(field.alignment for field in fields)
    return offsets, -(-at // whole) * whole


def _call(value: Callable[[], Any]) -> Any:
    """Values are read when they are decoded, so that columns that are not chosen are not read."""
    return value()


class Reader:
    """Runs of samples are its parts. Keys are numbers, or a column."""

    def __init__(self, source: str, choice: Choice) -> None:
        self._source = source
        self.classes: Sequence[str] = ()
        self.class_field = choice.label
        with _binary.opened(source) as file:
            self._read_head(file)
        self.parts = -(-self._samples // _PART)
        self.part_rows = [
            min(_PART, self._samples - part * _PART) for part in range(self.parts)
        ]
        self._table: tuple[Any, Any] | None = None
        columns = [Column(field.name, field.kind, _call) for field in self._members]
        self._fields = pick(source, columns, choice, tuple)
        self.schema = self._fields.schema

    def _read_head(self, file: File) -> None:
        head = struct.unpack("<HHIQQ", file.read(0, _HEADER, "a header"))
        version, n_fields, _, self._samples, self._table_at = head
        if version != _VERSION:
            raise UnsupportedError(
                f"{file.path}: expected a .beton file of version {_VERSION}, found {version}"
            )
        if not 1 <= n_fields <= _MAX_FIELDS or not self._table_at:
            raise _binary.invalid(
                file.path, 2, f"expected fields and a table of allocations, found {n_fields} fields"
            )
        data = file.read(_HEADER, n_fields * _DESCRIPTOR, f"{n_fields} descriptors of fields")
        starts = range(0, len(data), _DESCRIPTOR)
        self._members = [_field(file.path, data[at : at + _DESCRIPTOR]) for at in starts]
        self._offsets, self._stride = _layout(self._members)
        self._metadata_at = _HEADER + len(data)
        if self._metadata_at + self._samples * self._stride > file.size:
            raise _binary.invalid(
                file.path, 8, f"expected {self._samples} samples, but the file is too short"
            )

    def _allocations(self, file: File) -> tuple[Any, Any]:
        """Positions and sizes, sorted by position."""
        np = numpy()
        if self._table is None:
            n, rest = divmod(file.size - self._table_at, 24)
            if n < 0 or rest:
                raise _binary.invalid(file.path, self._table_at, "expected a table of allocations")
            if n > _MAX_ALLOCATIONS:
                raise LimitError(f"{file.path}: {n} allocations, at most {_MAX_ALLOCATIONS}")
            if not n:
                return (), ()
            rows = np.memmap(file.path, "<u8", "r", self._table_at, (n, 3))
            order = np.argsort(rows[:, 1], kind="stable")
            self._table = rows[:, 1][order], rows[:, 2][order]
        return self._table

    def _values(self, beton: _Beton, sample: int) -> list[Callable[[], Any]]:
        data = beton.file.read(
            self._metadata_at + sample * self._stride, self._stride, "metadata of a sample"
        )
        return [
            functools.partial(field.read, beton, struct.unpack_from(f"<{field.code}", data, at))
            for field, at in zip(self._members, self._offsets)
        ]

    def _samples_of(self, part: int) -> Iterator[tuple[int, list[Callable[[], Any]]]]:
        with _binary.opened(self._source) as file:
            beton = _Beton(file, *self._allocations(file))
            for i in range(part * _PART, min((part + 1) * _PART, self._samples)):
                yield self._metadata_at + i * self._stride, self._values(beton, i)

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self._fields.rows(self._source, 0, part * _PART, self._samples_of(part))


def recognise(path: str) -> bool:
    """A file whose name ends in .beton."""
    return path.endswith(".beton")


def open(source: str, choice: Choice) -> Reader:
    return Reader(source, choice)
