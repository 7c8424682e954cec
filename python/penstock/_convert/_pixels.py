# SPDX-License-Identifier: Apache-2.0
"""Pixels as PNG files, which are lossless. Pillow would be as good, but is not needed."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from .._error import InvalidError, LimitError, UnsupportedError
from ._binary import MAX_VALUE

# Modes of Pillow: bits per channel, channels, colour type of PNG. Other modes have no PNG.
_MODES = {
    "1": (1, 1, 0),
    "L": (8, 1, 0),
    "P": (8, 1, 0),
    "LA": (8, 2, 4),
    "RGB": (8, 3, 2),
    "RGBA": (8, 4, 6),
    "I;16": (16, 1, 0),
}
_OF_CHANNELS = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_LEVEL = 4  # of zlib; slower levels save little once rows are filtered
_MAX_SIDE = 65535


def numpy() -> Any:
    try:
        import numpy as np
    except ImportError:
        raise UnsupportedError("arrays and pixels need NumPy: pip install numpy") from None
    return np


def _chunk(kind: bytes, data: bytes) -> bytes:
    crc = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def _filtered(rows: Any, step: int) -> bytes:
    """Rows of bytes with the filters of PNG, 0 (none), 1 (sub) or 2 (up): for each row the one
    with the least sum of absolute differences, as the specification advises."""
    np = numpy()
    n, width = rows.shape
    best = np.empty((n, width + 1), np.uint8)
    best[:, 0], best[:, 1:] = 0, rows
    cost = np.abs(rows.view(np.int8).astype(np.int16)).sum(1)
    left, above = np.zeros_like(rows), np.zeros_like(rows)
    left[:, step:] = rows[:, :-step]
    above[1:] = rows[:-1]
    for number, before in ((1, left), (2, above)):
        difference = rows - before
        sums = np.abs(difference.view(np.int8).astype(np.int16)).sum(1)
        better = sums < cost
        best[better, 0], best[better, 1:] = number, difference[better]
        cost = np.minimum(cost, sums)
    return bytes(best)


def png(data: Any, width: int, height: int, mode: str) -> bytes:
    """A PNG file of pixels in the layout of Pillow's tobytes()."""
    if mode not in _MODES:
        raise UnsupportedError(
            f"pixels of mode {mode!r:.20} have no PNG; expected one of {', '.join(_MODES)}"
        )
    bits, channels, colour = _MODES[mode]
    if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE):
        raise LimitError(f"an image of {width} x {height} pixels: expected 1 to {_MAX_SIDE} a side")
    row = (width * channels * bits + 7) // 8
    if row * height > MAX_VALUE:
        raise LimitError(f"an image of {width} x {height} pixels: more than {MAX_VALUE} bytes")
    if len(data) != row * height:
        raise InvalidError(
            f"an image of {width} x {height} pixels, mode {mode}: expected {row * height} bytes, "
            f"found {len(data)}"
        )
    np = numpy()
    rows = np.frombuffer(data, "<u2").astype(">u2") if bits == 16 else np.frombuffer(data, np.uint8)
    rows = rows.view(np.uint8).reshape(height, row)
    body = zlib.compress(_filtered(rows, max(1, channels * bits // 8)), _LEVEL)
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")
    )


def png_of_array(array: Any) -> bytes:
    """A PNG file of an array of uint8: [H, W] or [H, W, channels]."""
    shape = array.shape
    channels = shape[2] if len(shape) == 3 else 1
    if len(shape) not in (2, 3) or array.dtype.name != "uint8" or channels not in _OF_CHANNELS:
        raise InvalidError(
            f"expected an image as uint8 of shape [H, W] or [H, W, 1 to 4], found {array.dtype} "
            f"of shape {list(shape)}"
        )
    return png(array.tobytes(), shape[1], shape[0], _OF_CHANNELS[channels])


def png_of_pil(data: bytes) -> bytes:
    """A PNG file of pixels as Mosaic and LitData store images of Pillow: width, height and length
    of the mode's name as 32-bit numbers, the name, the pixels."""
    if len(data) < 12:
        raise InvalidError(f"expected an image with a header of 12 bytes, found {len(data)} bytes")
    width, height, n = struct.unpack_from("<III", data)
    mode = data[12 : 12 + min(n, 16)].decode("latin-1")
    return png(memoryview(data)[12 + n :], width, height, mode)
