# SPDX-License-Identifier: Apache-2.0
"""The total of a quantity over all images, from those of a sample.

A model predicts the quantity of each image from its header: a power law of pixels, bytes per pixel,
the coarseness of its quantization tables, and whether it is gray. The prediction of the total is
corrected by the ratio of found to predicted in the sample (a model-assisted ratio estimate), so
that a wrong model makes the interval wider, but not the estimate wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..experiment.statistics import t_quantile
from .population import Item

Plane = Any  # a NumPy array of f64
FEWEST_FOR_MODEL = 20


class Total(NamedTuple):
    """An estimate with its 95 % interval; exact if these are the same."""

    value: float
    low: float
    high: float


def resized(item: Item, side: int) -> tuple[int, int]:
    """The size of an image whose longer side has at most `side` pixels; 0 for any number."""
    longest = max(item.width, item.height)
    if not side or longest <= side:
        return item.width, item.height
    return (max(1, (item.width * side * 2 + longest) // (2 * longest)),
            max(1, (item.height * side * 2 + longest) // (2 * longest)))


def _features(items: Sequence[Item], side: int) -> Plane:
    import numpy as np

    rows = []
    for item in items:
        width, height = resized(item, side)
        density = max(item.bytes, 1) / max(item.width * item.height, 1)
        rows.append((1.0, math.log(max(width * height, 1)), math.log(density),
                     math.log(item.coarseness or 1.0), float(item.coarseness == 0),
                     float(item.channels == 1)))
    return np.array(rows)


def _predicted(everything: Sequence[Item], chosen: Sequence[Item], found: Sequence[float],
               side: int) -> tuple[Plane, Plane]:
    """Of all items, and of the chosen ones."""
    import numpy as np

    if len(chosen) < FEWEST_FOR_MODEL:
        pixels = [math.prod(resized(item, side)) for item in everything]
        own = [math.prod(resized(item, side)) for item in chosen]
        return np.array(pixels, float), np.array(own, float)
    x, y = _features(chosen, side), np.log(np.maximum(np.array(found, float), 1.0))
    weights = np.linalg.lstsq(x, y, rcond=None)[0]
    return np.exp(_features(everything, side) @ weights), np.exp(x @ weights)


def total(everything: Sequence[Item], chosen: Sequence[Item], found: Sequence[float],
          side: int) -> Total:
    """The total over everything of a quantity that was found in the chosen items."""
    import numpy as np

    n, size = len(chosen), len(everything)
    if n == size:
        value = float(math.fsum(found))
        return Total(value, value, value)
    values = np.array(found, float)
    of_all, of_chosen = _predicted(everything, chosen, found, side)
    ratio = values.sum() / of_chosen.sum()
    value = float(ratio * of_all.sum())
    if n < 2:
        return Total(value, 0.0, math.inf)
    left = values - ratio * of_chosen
    error = size * math.sqrt((1 - n / size) / n * float(left @ left) / (n - 1))
    reach = t_quantile(n - 1) * error
    return Total(value, max(0.0, value - reach), value + reach)


def in_groups(everything: Sequence[Item], chosen: Sequence[Item], found: Sequence[float],
              side: int, group_of: Callable[[Item], object]) -> Total:
    """The same for images of several kinds, each with a model of its own. A group of which the
    sample has none is estimated by the mean of the sample."""
    kinds = {group_of(item) for item in everything}
    parts, missing = [], 0
    for kind in kinds:
        own = [(item, value) for item, value in zip(chosen, found) if group_of(item) == kind]
        members = [item for item in everything if group_of(item) == kind]
        if own:
            parts.append(total(members, [item for item, _ in own], [v for _, v in own], side))
        else:
            missing += len(members)
    value = math.fsum(part.value for part in parts) + missing * math.fsum(found) / len(found)
    reach = math.sqrt(math.fsum(((part.high - part.low) / 2) ** 2 for part in parts))
    return Total(value, max(0.0, value - reach), value + reach)
