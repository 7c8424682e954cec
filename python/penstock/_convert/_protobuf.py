# SPDX-License-Identifier: Apache-2.0
"""The message tf.train.Example: a map from names to lists of bytes, floats or integers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from .._error import InvalidError, LimitError, UnsupportedError

_MAX_FEATURES = 10_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise InvalidError(f"byte {at} of the record: expected a number of at most 10 bytes")


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, begin and end of the fields of a message."""
    while at < end:
        tag, at = _varint(data, at, end)
        wire, size = tag & 7, 0
        if wire == _BYTES:
            size, at = _varint(data, at, end)
        elif wire == _VARINT:
            _, stop = _varint(data, at, end)
            size = stop - at
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise InvalidError(f"byte {at} of the record: unknown wire type {wire}")
        if size > end - at:
            raise InvalidError(
                f"byte {at} of the record: expected {size} bytes, found {end - at}"
            )
        yield tag >> 3, wire, at, at + size
        at += size


def _integers(data: bytes, at: int, end: int) -> list[int]:
    values = []
    while at < end:
        value, at = _varint(data, at, end)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


def _floats(data: bytes, at: int, end: int) -> list[float]:
    if (end - at) % 4:
        raise InvalidError(f"byte {at} of the record: expected floats, found {end - at} bytes")
    return list(struct.unpack_from(f"<{(end - at) // 4}f", data, at))


def _list(data: bytes, at: int, end: int, kind: int) -> list[Any]:
    """BytesList, FloatList or Int64List: the field 1, repeated or packed."""
    values: list[Any] = []
    for number, wire, begin, stop in _fields(data, at, end):
        if number != 1:
            continue
        if kind == 1 and wire == _BYTES:
            values.append(data[begin:stop])
        elif kind == 2 and wire in (_BYTES, _FIXED32):
            values += _floats(data, begin, stop)
        elif kind == 3 and wire in (_BYTES, _VARINT):
            values += _integers(data, begin, stop)
        else:
            raise InvalidError(f"byte {begin} of the record: unexpected wire type {wire}")
    return values


def _feature(data: bytes, at: int, end: int) -> list[Any]:
    """The values. A feature has one kind of list; of several the last counts."""
    values: list[Any] = []
    for number, wire, begin, stop in _fields(data, at, end):
        if wire == _BYTES and number in (1, 2, 3):
            values = _list(data, begin, stop, number)
    return values


def _entry(data: bytes, at: int, end: int) -> tuple[str, list[Any]]:
    name, values = "", []
    for number, wire, begin, stop in _fields(data, at, end):
        if wire == _BYTES and number == 1:
            name = data[begin:stop].decode("utf-8", "replace")
        elif wire == _BYTES and number == 2:
            values = _feature(data, begin, stop)
    return name, values


def example(data: bytes) -> dict[str, list[Any]]:
    """The features of a tf.train.Example that have values."""
    features: dict[str, list[Any]] = {}
    for number, wire, begin, end in _fields(data, 0, len(data)):
        if number == 2:
            raise UnsupportedError("expected tf.train.Example, found a SequenceExample")
        if number != 1 or wire != _BYTES:
            raise InvalidError(f"expected tf.train.Example, found a message with field {number}")
        for inner, kind, at, stop in _fields(data, begin, end):
            if inner != 1 or kind != _BYTES:
                continue
            name, values = _entry(data, at, stop)
            if len(features) >= _MAX_FEATURES:
                raise LimitError(f"more than {_MAX_FEATURES} features")
            if values:
                features[name] = values
    return features
