# SPDX-License-Identifier: Apache-2.0
"""CRC-32C in NumPy. Data is cut into strips, which are computed side by side and then joined: a
CRC is linear, and that of a strip followed by n zero bytes is a fixed table of the CRC."""

from __future__ import annotations

import functools
from typing import Any

from ._pixels import numpy

_POLYNOMIAL = 0x82F63B78
_STRIP = 128  # bytes; must be even


@functools.cache
def _byte_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


@functools.cache
def _pair_table() -> Any:
    """For two bytes at once."""
    np = numpy()
    one = np.array(_byte_table(), np.uint32)
    state = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        state = one[state & 0xFF] ^ state >> 8
    return state


@functools.cache
def _zeros_table(n: int) -> Any:
    """What n zero bytes make of each of the 4 bytes of a state. n: _STRIP times a power of 2."""
    np = numpy()
    if n > _STRIP:
        half = _zeros_table(n // 2)
        return _after_zeros(half, half)
    state = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], np.uint32)
    for _ in range(n // 2):
        state = _pair_table()[state & 0xFFFF] ^ state >> 16
    return state


def _after_zeros(table: Any, state: Any) -> Any:
    a, b, c, d = table
    return a[state & 255] ^ b[state >> 8 & 255] ^ c[state >> 16 & 255] ^ d[state >> 24]


def _strips(data: bytes) -> int:
    np = numpy()
    n_strips = 1 << (-(-len(data) // _STRIP) - 1).bit_length()
    padded = np.zeros(n_strips * _STRIP, np.uint8)  # zeros in front change nothing
    start = padded.size - len(data)
    padded[start:] = np.frombuffer(data, np.uint8)
    padded[start : start + 4] ^= 0xFF  # the same as the initial value, all ones
    pairs = np.ascontiguousarray(padded.view("<u2").reshape(n_strips, -1).T)
    table, state = _pair_table(), np.zeros(n_strips, np.uint32)
    for pair in pairs:
        state = table.take((state ^ pair) & 0xFFFF) ^ state >> 16
    n = _STRIP
    while state.size > 1:
        state = _after_zeros(_zeros_table(n), state[::2]) ^ state[1::2]
        n *= 2
    return int(state[0])


def crc32c(data: bytes) -> int:
    if len(data) > _STRIP:
        return _strips(data) ^ 0xFFFFFFFF
    table, state = _byte_table(), 0xFFFFFFFF
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ 0xFFFFFFFF
