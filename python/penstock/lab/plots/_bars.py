# SPDX-License-Identifier: Apache-2.0
"""Horizontal bars with the 95 % interval of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import LabError
from . import _figure


class Bar(NamedTuple):
    """A bar of a chart.

    low, high  ends of its 95 % interval, drawn as a line; None if there is none
    group      bars of one group have one color and one hatch, which the legend names
    simulated  says so beside the figure"""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    group: str = ""
    simulated: bool = False


def _interval(axes: Any, y: int, bar: Bar) -> None:
    if bar.low is None or bar.high is None:
        return
    axes.plot([bar.low, bar.high], [y, y], color="#000000", linewidth=1.4,
              marker="|", markersize=7, zorder=3)


def _label(bar: Bar) -> str:
    return _figure.number(bar.value) + (" (simulated)" if bar.simulated else "")


def _check(title: str, bars: Sequence[Bar]) -> None:
    if not bars:
        raise LabError(f"cannot draw '{title}': expected at least one bar, found none")
    for bar in bars:
        _figure.check_finite(f"bar '{bar.name}'",
                             [v for v in (bar.value, bar.low, bar.high) if v is not None])


def _draw(axes: Any, bars: Sequence[Bar]) -> None:
    groups = list(dict.fromkeys(bar.group for bar in bars))
    named: set[str] = set()
    reach = max(abs(bar.value if bar.high is None else max(bar.value, bar.high)) for bar in bars)
    for y, bar in enumerate(bars):
        i = groups.index(bar.group)
        label = None if bar.group in named or not bar.group else _figure.clean(bar.group, 28)
        named.add(bar.group)
        axes.barh(y, bar.value, height=0.66, color=_figure.COLORS[i % len(_figure.COLORS)],
                  hatch=_figure.HATCHES[i % len(_figure.HATCHES)], edgecolor="white",
                  linewidth=0, label=label)
        _interval(axes, y, bar)
        end = bar.value if bar.high is None else max(bar.value, bar.high)
        axes.text(end + 0.012 * reach, y, _label(bar), va="center", fontsize=9, zorder=4,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    axes.set_xlim(right=reach * (1.3 if any(bar.simulated for bar in bars) else 1.14) or 1)
    if len([g for g in groups if g]) > 1:
        _figure.legend(axes, len(groups))


def bars(title: str, unit: str, bars: Sequence[Bar], note: str = "",
         line: float | None = None) -> _figure.Plot:
    """One bar for each figure, in the given order from the top.

    unit  of the figures, as the axis names it: "images/s, higher is better"
    line  a value that all bars are compared with: a dashed line"""
    _check(title, bars)
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 1.05 + 0.27 * len(bars))
        _draw(axes, bars)
        if line is not None:
            axes.axvline(line, color="#000000", linestyle="--", linewidth=1.2)
        axes.set_yticks(range(len(bars)), [_figure.clean(bar.name) for bar in bars])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.xaxis.set_major_formatter(lambda value, _: _figure.number(value))
        axes.set_xlabel(_figure.clean(unit, 80))
        return _figure.Plot(drawn)
