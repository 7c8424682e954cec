# SPDX-License-Identifier: Apache-2.0
"""Plots of the lab: SVG whose text stays text, the same bytes for the same figures.

    plots.bars("Loading rate", "images/s", [plots.Bar("penstock", 900, 880, 920)]).save("rate.svg")

Each function returns a Plot: `.svg()` is its text, `.save(path)` writes an SVG or a PNG."""

from __future__ import annotations

from ._bars import Bar, bars
from ._figure import Plot, figure
from ._histogram import histogram
from ._lines import Series, lines, scatter
from ._timeline import Lane, Span, timeline

__all__ = [
    "Bar", "Lane", "Plot", "Series", "Span", "bars", "figure", "histogram", "lines", "scatter",
    "timeline",
]
