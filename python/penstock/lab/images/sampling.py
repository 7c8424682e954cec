# SPDX-License-Identifier: Apache-2.0
"""Which images of a dataset are packed to estimate the size of all."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from .population import Item


class Drawn(NamedTuple):
    """An item of a sample, and the probability with which it is in one."""

    item: Item
    chance: float


def extent(item: Item) -> float:
    """A measure of how much an image contributes to the error of an estimate. It grows more slowly
    than bytes and pixels, as one sample serves for all sizes that images are shrunk to."""
    return math.sqrt(math.sqrt(max(1, item.bytes) * item.pixels))


def chances(sizes: Sequence[float], n: int) -> list[float]:
    """Probabilities in proportion to the sizes, of which none is above 1; their sum is n."""
    left, rest = n, sum(sizes)
    for size in sorted(sizes, reverse=True):
        if size * left < rest:
            break
        left, rest = left - 1, rest - size
    return [min(1.0, size * left / rest) if left else 1.0 for size in sizes]


def _systematic(items: Sequence[Item], shares: Sequence[float], seed: int) -> list[Drawn]:
    """In the order of their bytes, one item for each 1 that the sum of the shares grows by. So
    small and large images are in it as often as their shares say."""
    order = sorted(range(len(items)), key=lambda i: (items[i].bytes, items[i].key))
    total, start, found = 0.0, random.Random(seed).random(), []
    for i in order:
        before, total = int(total + start), total + shares[i]
        if int(total + start) > before:
            found.append(Drawn(items[i], shares[i]))
    return found


def evenly(items: Sequence[Item], n: int, seed: int) -> list[Item]:
    """n of the items, each with the same probability."""
    if n >= len(items):
        return list(items)
    return [drawn.item for drawn in _systematic(items, [n / len(items)] * len(items), seed)]


def by_extent(items: Sequence[Item], n: int, seed: int) -> list[Drawn]:
    """n of the items; large ones with a higher probability."""
    if not 0 < n < len(items):
        return [Drawn(item, 1.0) for item in items]
    return _systematic(items, chances([extent(item) for item in items], n), seed)
