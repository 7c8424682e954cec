# SPDX-License-Identifier: Apache-2.0
"""Arrays as values of fields: numbers of a shape, images, or .npy files."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from .._error import InvalidError, LimitError
from ._binary import MAX_VALUE
from ._columns import number_type
from ._pixels import numpy, png_of_array

_DTYPES = {"i64": "int64", "f32": "float32", "f64": "float64"}
_MAX_DIMS = 32


def type_of(dtype: str, shape: Sequence[int]) -> str:
    """The type for arrays like this one. uint8 of shape [H, W, 1, 3 or 4] is an image; arrays
    without numbers, and empty ones, become .npy files."""
    if dtype == "uint8" and len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape) > 0:
        return "image"
    kind = numpy().dtype(dtype)
    return number_type(kind.kind, kind.itemsize, shape) or "bytes"


def array_of(data: bytes, dtype: str, shape: Sequence[int] | None) -> Any:
    """An array of little-endian values; shape None: one dimension."""
    np = numpy()
    kind = np.dtype(dtype).newbyteorder("<")
    if shape is None:
        shape = (len(data) // kind.itemsize,)
    n = math.prod(shape)
    if len(shape) > _MAX_DIMS or n > MAX_VALUE:
        raise LimitError(f"an array of shape {list(shape)[:8]}: it is too large")
    if n * kind.itemsize != len(data):
        raise InvalidError(
            f"an array of {dtype}, shape {list(shape)[:8]}: expected {n * kind.itemsize} bytes, "
            f"found {len(data)}"
        )
    return np.frombuffer(data, kind).reshape(shape)


def _npy(array: Any) -> bytes:
    to = io.BytesIO()
    numpy().save(to, array, allow_pickle=False)
    return to.getvalue()


def _numbers(array: Any, kind: str) -> Any:
    np = numpy()
    dtype = _DTYPES[kind]
    if kind == "i64" and array.dtype.kind not in "bui":
        raise InvalidError(f"expected integers, found {array.dtype}")
    if array.dtype.name == "uint64" and array.size and int(array.max()) >= 2**63:
        raise InvalidError(f"expected numbers below 2^63, found {int(array.max())}")
    return np.ascontiguousarray(array, dtype).reshape(array.shape)


def fitted(value: Any, kind: str) -> Any:
    """A value as penstock.Writer takes it for a field of this type. Only arrays change."""
    if not hasattr(value, "dtype"):
        return value
    name = kind.rstrip("?").partition("[")[0]
    if name in ("image", "mask"):
        return png_of_array(value)
    if name in _DTYPES:
        return _numbers(value, name)
    return value.tolist() if name == "json" else _npy(value)
