# SPDX-License-Identifier: Apache-2.0
"""What happened when: one lane for each thread or device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import LabError
from . import _figure


class Span(NamedTuple):
    """Something that took time."""

    kind: str
    start: float  # seconds
    seconds: float


class Lane(NamedTuple):
    """One row of a timeline."""

    name: str
    spans: Sequence[Span]


def _check(title: str, lanes: Sequence[Lane]) -> None:
    if not any(lane.spans for lane in lanes):
        raise LabError(f"cannot draw '{title}': expected at least one span, found none")
    for lane in lanes:
        for span in lane.spans:
            _figure.check_finite(f"lane '{lane.name}'", span[1:])
            if span.seconds < 0:
                raise LabError(f"cannot draw lane '{lane.name}': expected spans of 0 or more "
                                   f"seconds, found {span.seconds:g}")


def _draw(axes: Any, lanes: Sequence[Lane], kinds: Sequence[str]) -> None:
    for y, lane in enumerate(lanes):
        for i, kind in enumerate(kinds):
            parts = [(s.start, s.seconds) for s in lane.spans if s.kind == kind]
            if parts:
                axes.broken_barh(parts, (y - 0.38, 0.76),
                                 facecolor=_figure.COLORS[i % len(_figure.COLORS)],
                                 hatch=_figure.HATCHES[i % len(_figure.HATCHES)],
                                 edgecolor="white", linewidth=0.3)


def _legend(axes: Any, kinds: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    marks = [Patch(facecolor=_figure.COLORS[i % len(_figure.COLORS)], edgecolor="white",
                   hatch=_figure.HATCHES[i % len(_figure.HATCHES)], label=_figure.clean(kind, 28))
             for i, kind in enumerate(kinds)]
    _figure.legend(axes, len(kinds), handles=marks)


def timeline(title: str, lanes: Sequence[Lane], note: str = "") -> _figure.Plot:
    """Spans over time in seconds. Each kind of span has a color and a hatch; what is empty is
    idle."""
    _check(title, lanes)
    kinds = list(dict.fromkeys(span.kind for lane in lanes for span in lane.spans))
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 1.3 + 0.3 * len(lanes))
        _draw(axes, lanes, kinds)
        axes.set_yticks(range(len(lanes)), [_figure.clean(lane.name) for lane in lanes])
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, max(s.start + s.seconds for lane in lanes for s in lane.spans) or 1)
        axes.set_xlabel("time (s)")
        axes.grid(axis="x")
        _legend(axes, kinds)
        return _figure.Plot(drawn)
