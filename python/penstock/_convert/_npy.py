# SPDX-License-Identifier: Apache-2.0
"""Arrays in NumPy's .npy format, without NumPy, and without pickles."""

from __future__ import annotations

import ast
import math
import re
import struct
from typing import Any

from .._error import InvalidError
from ._columns import number_type

_MAGIC = b"\x93NUMPY"
_HEADER_BYTES = 1 << 16
_DIMENSIONS = 32
_DTYPE = re.compile(r"([<>|=])([biuf][1248])")
_CODES = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
          "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}  # fmt: skip
_WRITTEN = {"i64": "<i8", "f32": "<f4", "f64": "<f8"}


def parse(data: bytes) -> tuple[str | None, Any]:
    """The type of a field and its value, as for penstock.Writer; None if the array has no numbers,
    or has them in Fortran's order. Wrong content raises InvalidError."""
    try:
        return _parse(data)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise InvalidError(f"expected an array in .npy format: {error}") from None


def dump(base: str, shape: tuple[int, ...], content: bytes) -> bytes:
    """The array of a field with numbers, from its little-endian bytes."""
    header = f"{{'descr': '{_WRITTEN[base]}', 'fortran_order': False, 'shape': {shape!r}, }}"
    size = len(header) + 1 + -(len(header) + 11) % 64  # with the 10 bytes before, in units of 64
    start = _MAGIC + b"\x01\x00" + struct.pack("<H", size)
    return start + header.ljust(size - 1).encode() + b"\n" + content


def _parse(data: bytes) -> tuple[str | None, Any]:
    if data[:6] != _MAGIC or len(data) < 12:
        raise ValueError("it does not start like one")
    wide = 4 if data[6] > 1 else 2
    size = int.from_bytes(data[8 : 8 + wide], "little")
    if size > _HEADER_BYTES:
        raise ValueError("its header is too long")
    start = 8 + wide + size
    header = ast.literal_eval(data[8 + wide : start].decode("latin-1").strip())
    shape, dtype = tuple(header["shape"]), header["descr"]
    match = _DTYPE.fullmatch(dtype) if isinstance(dtype, str) else None
    whole = all(type(n) is int for n in shape) and len(shape) <= _DIMENSIONS
    if not match or match[2] not in _CODES or not whole or header["fortran_order"]:
        return None, None
    itemsize = int(match[2][1])
    content = memoryview(data)[start:]
    if min(shape, default=1) < 0 or math.prod(shape) * itemsize != len(content):
        raise ValueError(f"a shape of {shape} does not fit {len(content)} bytes")
    kind = number_type(match[2][0], itemsize, shape)
    return kind, _value(content, match[1], _CODES[match[2]], shape) if kind else None


def _value(content: memoryview, order: str, code: str, shape: tuple[int, ...]) -> Any:
    if shape and order != ">" and code in "qfd":
        return content.cast(code, shape)  # type: ignore[call-overload]
    order = ">" if order == ">" else "<"
    return _nested(struct.unpack(f"{order}{math.prod(shape)}{code}", content), shape)


def _nested(flat: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = len(flat) // shape[0]
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
