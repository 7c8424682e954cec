# SPDX-License-Identifier: Apache-2.0
"""How often each value occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import LabError
from . import _figure


def _edges(values: Sequence[float], bins: int) -> list[float]:
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [low + (high - low) * i / bins for i in range(bins + 1)]


def histogram(title: str, x: str, values: Mapping[str, Sequence[float]], *, bins: int = 30,
              y: str = "images", note: str = "") -> _figure.Plot:
    """Counts of values in equal bins. Several sets are outlines over each other, the first one is
    filled; each has a line style of its own.

    x     names the axis of the values and their unit
    bins  number of bins, from the lowest to the highest value of all sets"""
    everything = [value for one in values.values() for value in one]
    if not everything:
        raise LabError(f"cannot draw '{title}': expected at least one value, found none")
    if not 1 <= bins <= 1000:
        raise LabError(f"cannot draw '{title}': expected 1 to 1000 bins, found {bins}")
    _figure.check_finite(f"'{title}'", everything)
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 3.2)
        edges = _edges(everything, bins)
        for i, (name, one) in enumerate(values.items()):
            color = _figure.COLORS[i % len(_figure.COLORS)]
            looks = ({"histtype": "bar", "edgecolor": "white", "linewidth": 0.6} if i == 0 else
                     {"histtype": "step", "linewidth": 2.0,
                      "linestyle": _figure.DASHES[(i - 1) % len(_figure.DASHES)]})
            axes.hist(list(one), bins=edges, color=color, label=_figure.clean(name, 28), **looks)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: _figure.number(value))
        axes.set_xlabel(_figure.clean(x, 80))
        axes.set_ylabel(_figure.clean(y, 60))
        axes.grid(axis="y")
        if len(values) > 1:
            _figure.legend(axes, len(values))
        return _figure.Plot(drawn)
