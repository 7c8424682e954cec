# SPDX-License-Identifier: Apache-2.0
"""Lines and points over two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import LabError
from . import _figure

SCALES = ("linear", "log")
FEW = 8  # values that an axis can name one by one
APART = 0.08  # of the axis, which the names of two values need


class Series(NamedTuple):
    """Points that belong together.

    low, high  ends of the 95 % interval of each y; () if there are none
    names      a name beside each point; () for none"""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    names: Sequence[str] = ()


def _check(title: str, series: Sequence[Series], scales: Sequence[str]) -> None:
    if not any(len(one.x) for one in series):
        raise LabError(f"cannot draw '{title}': expected at least one point, found none")
    for scale in scales:
        if scale not in SCALES:
            raise LabError(f"cannot draw '{title}': expected a scale of {SCALES}, "
                               f"found {scale!r}")
    for one in series:
        for values in (one.y, one.low or one.y, one.high or one.y, one.names or one.y):
            if len(values) != len(one.x):
                raise LabError(f"cannot draw series '{one.name}': expected {len(one.x)} values "
                                   f"for its {len(one.x)} points, found {len(values)}")
        for values in (one.x, one.y, one.low, one.high):
            _figure.check_finite(f"series '{one.name}'", values)


def _interval(axes: Any, one: Series, color: str) -> None:
    if one.low and one.high:
        below = [max(0.0, y - low) for y, low in zip(one.y, one.low)]
        above = [max(0.0, high - y) for y, high in zip(one.y, one.high)]
        axes.errorbar(one.x, one.y, yerr=[below, above], fmt="none", ecolor=color, capsize=3,
                      elinewidth=1.2)


def _names(axes: Any, one: Series) -> None:
    for x, y, name in zip(one.x, one.y, one.names):
        axes.annotate(_figure.clean(name, 24), (x, y), xytext=(5, 4), textcoords="offset points",
                      fontsize=8)


def _can_be_named(values: Sequence[float]) -> bool:
    """Whether sorted values are few, and so far apart on a logarithmic axis that their names do not
    overlap."""
    logs = [math.log(value) for value in values]
    least = APART * (logs[-1] - logs[0]) if logs else 0.0
    return len(values) <= FEW and all(b - a >= least for a, b in zip(logs, logs[1:]))


def _ticks(axis: Any, scale: str, values: Sequence[float]) -> None:
    """Plain numbers. On a logarithmic axis they are the values themselves if these can be named."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    if scale == "log":
        here = sorted({value for value in values if value > 0})  # a log axis has no others
        axis.set_major_locator(FixedLocator(here) if _can_be_named(here)
                               else LogLocator(subs=(1, 2, 5), numticks=12))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: _figure.number(value))


def _axes(axes: Any, x: str, y: str, series: Sequence[Series], scales: Sequence[str]) -> None:
    axes.set_xscale(scales[0])
    axes.set_yscale(scales[1])
    _ticks(axes.xaxis, scales[0], [v for one in series for v in one.x])
    _ticks(axes.yaxis, scales[1], range(FEW + 1))
    axes.set_xlabel(_figure.clean(x, 80))
    axes.set_ylabel(_figure.clean(y, 60))
    axes.grid()
    if len(series) > 1:
        _figure.legend(axes, len(series))


def _points(axes: Any, series: Sequence[Series], styles: Sequence[dict[str, Any]]) -> None:
    """Each series with a color, a mark and a style of its own."""
    for i, one in enumerate(series):
        color = _figure.COLORS[i % len(_figure.COLORS)]
        axes.plot(one.x, one.y, color=color, marker=_figure.MARKERS[i % len(_figure.MARKERS)],
                  label=_figure.clean(one.name, 28), **styles[i % len(styles)])
        _interval(axes, one, color)
        _names(axes, one)


def lines(title: str, x: str, y: str, series: Sequence[Series], *, note: str = "",
          scales: tuple[str, str] = ("linear", "linear")) -> _figure.Plot:
    """One line for each series, with a mark at each point. x and y name the axes and their
    units. A linear y axis starts at 0."""
    _check(title, series, scales)
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 3.9)
        _points(axes, series, [{"linestyle": dashes} for dashes in _figure.DASHES])
        _axes(axes, x, y, series, scales)
        if scales[1] == "linear":
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        return _figure.Plot(drawn)


def scatter(title: str, x: str, y: str, series: Sequence[Series], *, note: str = "",
            scales: tuple[str, str] = ("linear", "linear")) -> _figure.Plot:
    """Points alone: each series has a color and a mark of its own. The axes show the range of the
    points."""
    _check(title, series, scales)
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 3.9)
        _points(axes, series, [{"linestyle": "none", "markersize": 7, "markeredgecolor": "white",
                                "markeredgewidth": 0.6}])
        _axes(axes, x, y, series, scales)
        return _figure.Plot(drawn)
