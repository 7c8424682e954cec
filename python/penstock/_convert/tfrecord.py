# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of tf.train.Example, plain or compressed with gzip.

A record: its length (64 bits), a checksum of the length, the record, a checksum of the record. The
checksums are CRC-32C, rotated and with a constant added.
"""

from __future__ import annotations

import array
import functools
import itertools
import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from .._error import Error, InvalidError, LimitError
from . import _binary
from ._binary import MAX_VALUE
from ._columns import is_image
from ._crc32c import crc32c
from ._fields import Column, json_bytes, pick
from ._protobuf import example
from ._reader import Choice

_SNIFF = 100  # records that decide the types of columns
_PIECE = 1 << 20
_MIXED = "mixed"  # in place of a type, for a feature with bytes and numbers
_CODES = {"i64": "q", "f32": "f", "f64": "d"}


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _read(file: BinaryIO, n: int) -> bytes:
    """Up to `n` bytes, in pieces: a wrong length must not allocate memory for nothing."""
    pieces = []
    while n > 0 and (piece := file.read(min(n, _PIECE))):
        pieces.append(piece)
        n -= len(piece)
    return b"".join(pieces)


def _length(path: str, at: int, head: bytes) -> int:
    if len(head) != 12:
        raise _binary.invalid(path, at, f"expected the head of a record, found {len(head)} bytes")
    n, check = struct.unpack("<QI", head)
    if _masked(head[:8]) != check:
        raise _binary.invalid(path, at, "the checksum of the record's length does not match")
    if n > MAX_VALUE:
        raise LimitError(f"{path}: byte {at}: a record of {n} bytes, at most {MAX_VALUE}")
    return int(n)


def _records(path: str, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The position and bytes of every record; in a gzip file, the position after decompression."""
    at = 0
    while head := _read(file, 12):
        n = _length(path, at, head)
        data = _read(file, n)
        check = _read(file, 4)
        if len(data) != n or len(check) != 4:
            raise _binary.invalid(path, at, f"expected a record of {n} bytes, found {len(data)}")
        if _masked(data) != struct.unpack("<I", check)[0]:
            raise _binary.invalid(path, at, "the checksum of the record does not match")
        yield at, data
        at += 16 + n


def _examples(path: str) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    with _binary.streaming(path) as file:
        for at, data in _records(path, file):
            try:
                features = example(data)
            except Error as error:
                raise type(error)(f"{path}: byte {at}: {error}") from None
            yield at, features


# ---- types


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


class _Seen(NamedTuple):
    """What decides the type, of a feature in one record."""

    kind: type  # of its values: bytes, int or float
    n: int
    are_images: bool
    are_texts: bool


def _look(values: list[Any]) -> _Seen:
    kind = type(values[0])
    are_images = kind is bytes and all(map(is_image, values))
    return _Seen(kind, len(values), are_images, kind is bytes and all(map(_is_text, values)))


def _bytes_type(seen: Sequence[_Seen]) -> str:
    is_single = all(each.n == 1 for each in seen)
    if all(each.are_images for each in seen):
        return "image" if is_single else "clip"
    if all(each.are_texts for each in seen):
        return "text" if is_single else "json"
    return "bytes"


def _type(seen: Sequence[_Seen], is_missing: bool) -> str:
    """The type for a feature with these values in the first records."""
    first = seen[0]
    if len({each.kind is bytes for each in seen}) > 1:
        return _MIXED
    if first.kind is bytes:
        kind = _bytes_type(seen)
        return kind + "?" * (is_missing and kind in ("text", "json", "bytes"))
    if is_missing or any(each.n != first.n for each in seen):
        return "json" + "?" * is_missing
    kind = "i64" if first.kind is int else "f32"
    return kind if first.n == 1 else f"{kind}[{first.n}]"


def _sniff(path: str) -> dict[str, str]:
    """The types of all features in the first records, of which one at a time is in memory."""
    found: dict[str, list[_Seen]] = {}
    n = 0
    for _, features in itertools.islice(_examples(path), _SNIFF):
        n += 1
        for name, values in features.items():
            found.setdefault(name, []).append(_look(values))
    return {name: _type(found[name], len(found[name]) < n) for name in sorted(found)}


# ---- values


def _numbers(kind: str, values: list[Any]) -> Any:
    name, _, dims = kind.partition("[")
    shape = [int(n) for n in dims.rstrip("]").split(",")] if dims else []
    if len(values) != math.prod(shape) or isinstance(values[0], bytes):
        raise InvalidError(
            f'expected {kind}, found {len(values)} values; use the type "json" for lists of '
            "different lengths"
        )
    if name == "i64" and isinstance(values[0], float):
        raise InvalidError("expected integers, found floats")
    if not shape:
        return values[0]
    flat = memoryview(array.array(_CODES[name], values))
    return flat.cast("B").cast(_CODES[name], shape)  # type: ignore[call-overload]


def _plain(values: list[Any]) -> list[Any]:
    """As JSON has them."""
    return [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in values]


def _value(kind: str, is_list: bool, values: list[Any] | None) -> Any:
    """The value of a field of this type. is_list: its JSON is the list, even of one value."""
    name = kind.rstrip("?").partition("[")[0]
    if not values:
        if kind.endswith("?") or name == "image":
            return None
        if name in ("json", "clip"):
            return []
        raise InvalidError(f'the record has no value; expected {kind}, or use the type "json?"')
    if name in _CODES:
        return _numbers(kind, values)
    is_bytes = isinstance(values[0], bytes)
    if name == "json" and (is_list or not is_bytes):
        return _plain(values)
    if not is_bytes or (len(values) != 1 and name != "clip"):
        raise InvalidError(f"expected {kind}, found {len(values)} values of another kind")
    if name == "json":
        return json_bytes(values[0])
    return values if name == "clip" else values[0]


# ---- files


def _looks_right(path: str) -> bool:
    try:
        with _binary.streaming(path) as file:
            _length(path, 0, file.read(12))
    except Error:
        return False
    return True


def _files(source: str) -> list[str]:
    """The file, or the files of a folder, by name: those named *.tfrecord* or *-of-*."""
    if not os.path.isdir(source):
        return [source]
    try:
        names = sorted(os.listdir(source))
    except OSError as error:
        raise _binary.os_error(source, error) from None
    paths = [
        os.path.join(source, name) for name in names if ".tfrecord" in name or "-of-" in name
    ]
    return [path for path in paths if os.path.isfile(path)]


class Reader:
    """The files are its parts. Keys are numbers, or a column."""

    def __init__(self, source: str, choice: Choice) -> None:
        self.classes: Sequence[str] = ()
        self.class_field = choice.label
        self.part_rows: Sequence[int] | None = None
        self._paths = _files(source)
        self.parts = len(self._paths)
        if not self._paths:
            raise InvalidError(
                f"{source}: expected files named *.tfrecord* or *-of-*, found none"
            )
        found = next(filter(None, map(_sniff, self._paths)), {})
        given = {name: kind for name, kind in (choice.columns or {}).items() if kind}
        self._kinds = {**found, **given}
        self._takes_all = choice.columns is None
        columns = [
            Column(name, kind, functools.partial(_value, kind, name not in given))
            for name, kind in self._kinds.items()
        ]
        self._fields = pick(source, columns, choice, tuple)
        self.schema = self._fields.schema
        for name in (*self.schema, choice.key or ""):
            if self._kinds.get(name) == _MIXED:
                raise InvalidError(
                    f"{source}: column {name!r}: expected bytes or numbers, found both"
                )

    def _check_known(self, path: str, at: int, features: Mapping[str, Any]) -> None:
        for name in features.keys() - self._kinds.keys() if self._takes_all else ():
            raise _binary.invalid(
                path, at, f"the feature {name!r:.100} is not in the first {_SNIFF} records; "
                "name all columns and their types",
            )  # fmt: skip

    def _values(self, path: str) -> Iterator[tuple[int, list[Any]]]:
        for at, features in _examples(path):
            self._check_known(path, at, features)
            yield at, [features.get(name) for name in self._kinds]

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        path = self._paths[part]
        yield from self._fields.rows(path, part, 0, self._values(path))


def recognise(path: str) -> bool:
    """A file that begins with a record, or a folder of such files."""
    if os.path.isdir(path):
        files = _files(path)
        return bool(files) and _looks_right(files[0])
    return _looks_right(path)


def open(source: str, choice: Choice) -> Reader:
    return Reader(source, choice)
