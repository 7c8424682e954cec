# SPDX-License-Identifier: Apache-2.0
"""The total of a quantity over all images, from those of a sample.

A model predicts the quantity of each image: a power law of its pixels, bytes per pixel, the
coarseness of its quantization tables, how detailed it is, and whether it is gray. The prediction of
the total is corrected by the ratio of found to predicted in the sample (a model-assisted ratio
estimate), so that a wrong model makes the interval wider, but not the estimate wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..experiment.statistics import t_quantile
from .population import Item
from .sampling import Drawn, extent

Plane = Any  # a NumPy array of f64
FEWEST_FOR_MODEL = 40


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
        rows.append((1.0, math.log(math.prod(resized(item, side))),
                     math.log(max(item.bytes, 1) / item.pixels),
                     math.log(item.coarseness or 1.0), float(item.coarseness == 0),
                     float(item.channels == 1), *map(math.log, item.detail)))
    return np.array(rows)


def _predicted(everything: Sequence[Item], chosen: Sequence[Item], found: Plane, weights: Plane,
               side: int) -> tuple[Plane, Plane, int]:
    """Of all items, of the chosen ones, and how many coefficients the model has."""
    import numpy as np

    if len(chosen) < FEWEST_FOR_MODEL:
        whole, own = (np.array([math.prod(resized(item, side)) * item.channels for item in items],
                               float) for items in (everything, chosen))
        return whole, own, 1
    x, y, root = _features(chosen, side), np.log(np.maximum(found, 1.0)), np.sqrt(weights)
    model = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    return np.exp(_features(everything, side) @ model), np.exp(x @ model), x.shape[1]


def total(everything: Sequence[Item], drawn: Sequence[Drawn], found: Sequence[float],
          side: int) -> Total:
    """The total over everything of a quantity that was found in the drawn items."""
    import numpy as np

    n = len(drawn)
    if n == len(everything):
        value = float(math.fsum(found))
        return Total(value, value, value)
    values, chances = np.array(found, float), np.array([one.chance for one in drawn])
    weights = 1 / chances
    of_all, of_drawn, terms = _predicted(everything, [one.item for one in drawn], values, weights,
                                         side)
    ratio = (weights @ values) / (weights @ of_drawn)
    value = float(ratio * of_all.sum())
    if n < 2:
        return Total(value, 0.0, math.inf)
    left = weights * (values - ratio * of_drawn)
    error = math.sqrt(n / (n - terms) * float(np.sum((1 - chances) * left**2)))
    reach = t_quantile(n - terms) * error
    return Total(value, max(0.0, value - reach), value + reach)


def in_groups(everything: Sequence[Item], drawn: Sequence[Drawn], found: Sequence[float],
              side: int, group_of: Callable[[Item], object]) -> Total:
    """The same for images of several kinds, each with a model of its own. A group of which the
    sample has none is estimated by the mean of the sample."""
    kinds = {group_of(item) for item in everything}
    parts, missing = [], 0
    for kind in kinds:
        own = [(one, value) for one, value in zip(drawn, found) if group_of(one.item) == kind]
        members = [item for item in everything if group_of(item) == kind]
        if own:
            parts.append(total(members, [one for one, _ in own], [v for _, v in own], side))
        else:
            missing += len(members)
    value = math.fsum(part.value for part in parts) + missing * math.fsum(found) / len(found)
    reach = math.hypot(*((part.high - part.low) / 2 for part in parts))
    return Total(value, max(0.0, value - reach), value + reach)


def expanded(part: Total, items: Sequence[Item], drawn: Sequence[Drawn], found: Sequence[float],
             dataset: Sequence[Item]) -> Total:
    """The total over a dataset, from that over some items which were chosen evenly from it, by the
    ratio of their extents."""
    import numpy as np

    if len(items) >= len(dataset):
        return part
    own = math.fsum(map(extent, items))
    scale = math.fsum(map(extent, dataset)) / own
    left = np.array(found) - part.value / own * np.array([extent(one.item) for one in drawn])
    weights = np.array([1 / one.chance for one in drawn])
    variance = float(weights @ left**2 / weights.sum())
    error = scale * math.sqrt((1 - len(items) / len(dataset)) * len(items) * variance)
    value = part.value * scale
    reach = math.hypot((part.high - part.low) / 2 * scale, t_quantile(len(drawn) - 1) * error)
    return Total(value, max(0.0, value - reach), value + reach)
