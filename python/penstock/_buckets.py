# SPDX-License-Identifier: Apache-2.0
"""The argument `buckets`: the sizes that batches can have."""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Sequence
from typing import Any

from . import _check, _subset
from ._error import InvalidError

_MOST = 255
_SIDE = 16384

Sizes = tuple[tuple[int, int], ...]


def _size(i: int, given: Any) -> tuple[int, int]:
    what = f"buckets: entry {i}"
    expected = f"{what}: expected (height, width)"
    sides = _subset.as_list(_subset.as_array(given), expected)
    if len(sides) != 2:
        raise InvalidError(f"{expected}, found {_check.shown(given)}")
    return (
        _check.integer(f"{what}: height", sides[0], 1, _SIDE),
        _check.integer(f"{what}: width", sides[1], 1, _SIDE),
    )


def choose(buckets: Iterable[Sequence[int]] | None) -> Sizes | None:
    """The sizes, checked."""
    if buckets is None:
        return None
    expected = "buckets: expected a list of (height, width)"
    given = _subset.as_list(_subset.as_array(buckets), expected)
    sizes = tuple(_size(i, size) for i, size in enumerate(given))
    if not 1 <= len(sizes) <= _MOST:
        raise InvalidError(f"buckets: expected 1 to {_MOST} sizes, found {len(sizes)}")
    return sizes


def packed(sizes: Sizes | None) -> memoryview | None:
    """The sizes for the library."""
    if sizes is None:
        return None
    return memoryview(array.array("I", [side for size in sizes for side in size])).cast("B")


def aspect_buckets(
    area: int = 1024 * 1024, multiple: int = 64, max_ratio: float = 2.0
) -> list[tuple[int, int]]:
    """Sizes of about one area and different aspect ratios, for Loader(buckets=...). Each is
    (height, width), from the widest to the tallest.

    area       maximum height x width, in pixels
    multiple   both sides are multiples of this number
    max_ratio  maximum quotient of the longer and the shorter side
    """
    area = _check.integer("area", area, 1, _SIDE**2)
    multiple = _check.integer("multiple", multiple, 1, _SIDE)
    max_ratio = _check.real("max_ratio", max_ratio, 1, _SIDE)
    found: set[tuple[int, int]] = set()
    for short in range(multiple, math.isqrt(area) + 1, multiple):
        long = min(area // short, _SIDE) // multiple * multiple
        if short <= long <= short * max_ratio:
            found.update([(short, long), (long, short)])
    if not 1 <= len(found) <= _MOST:
        raise InvalidError(
            f"area={area}, multiple={multiple}, max_ratio={max_ratio} have {len(found)} sizes; "
            f"expected 1 to {_MOST}: change multiple or max_ratio"
        )
    return sorted(found, key=lambda size: (size[0] / size[1], size))
