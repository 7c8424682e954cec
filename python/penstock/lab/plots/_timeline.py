# SPDX-License-Identifier: Apache-2.0
"""What happened when: one lane for each thread or device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import LabError
from . import _figure


class Span(NamedTuple):
    """Something that took time."""

    kind: str
    start: float  # seconds
    seconds: float


class Lane(NamedTuple):
    """A row of a timeline: spans, or a line of (seconds, percent), or the heading of other rows."""

    name: str
    spans: Sequence[Span]
    line: Sequence[tuple[float, float]] = ()
    heading: bool = False


def _check(title: str, lanes: Sequence[Lane]) -> None:
    if not any(lane.spans for lane in lanes):
        raise LabError(f"cannot draw '{title}': expected at least one span, found none")
    for lane in lanes:
        for span in lane.spans:
            _figure.check_finite(f"lane '{lane.name}'", span[1:])
            if span.seconds < 0:
                raise LabError(f"cannot draw lane '{lane.name}': expected spans of 0 or more "
                                   f"seconds, found {span.seconds:g}")
        for point in lane.line:
            _figure.check_finite(f"lane '{lane.name}'", point)


def _looks(kinds: Sequence[str], colors: Mapping[str, str] | None) -> dict[str, dict[str, Any]]:
    """How the spans of each kind look: of given colors, or of those of the lab with a hatch."""
    if colors is not None:
        return {kind: {"facecolor": colors[kind]} for kind in kinds}
    return {kind: {"facecolor": _figure.COLORS[i % len(_figure.COLORS)], "edgecolor": "white",
                   "hatch": _figure.HATCHES[i % len(_figure.HATCHES)]}
            for i, kind in enumerate(kinds)}


def _draw(axes: Any, y: int, lane: Lane, looks: Mapping[str, dict[str, Any]]) -> None:
    if lane.heading:
        axes.text(0, y, _figure.clean(lane.name, 90), va="center", fontweight="bold")
    for kind, look in looks.items():
        parts = [(s.start, s.seconds) for s in lane.spans if s.kind == kind]
        if parts:
            axes.broken_barh(parts, (y - 0.38, 0.76), linewidth=0.3 if "hatch" in look else 0,
                             **look)
    if lane.line:
        axes.plot([at for at, _ in lane.line],
                  [y + 0.38 - 0.76 * min(percent, 100.0) / 100 for _, percent in lane.line],
                  color=_figure.COLORS[1], linewidth=1)


def _legend(axes: Any, looks: Mapping[str, dict[str, Any]]) -> None:
    from matplotlib.patches import Patch

    marks = [Patch(label=_figure.clean(kind, 28), **look) for kind, look in looks.items()]
    _figure.legend(axes, len(looks), handles=marks)


def _end(lane: Lane) -> float:
    return max([s.start + s.seconds for s in lane.spans] + [at for at, _ in lane.line], default=0.0)


def timeline(title: str, lanes: Sequence[Lane], note: str = "",
             colors: Mapping[str, str] | None = None) -> _figure.Plot:
    """Spans over time in seconds. Each kind of span has a color and a hatch, or its color of
    `colors`, whose order the legend then has; what is empty is idle."""
    _check(title, lanes)
    found = dict.fromkeys(span.kind for lane in lanes for span in lane.spans)
    looks = _looks(list(found) if colors is None else [k for k in colors if k in found], colors)
    with _figure.style():
        drawn, axes = _figure.figure(title, note, 1.3 + 0.3 * len(lanes))
        for y, lane in enumerate(lanes):
            _draw(axes, y, lane, looks)
        axes.set_yticks(range(len(lanes)),
                        ["" if lane.heading else _figure.clean(lane.name) for lane in lanes])
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, max(map(_end, lanes)) or 1)
        axes.set_xlabel("time (s)")
        axes.grid(axis="x")
        _legend(axes, looks)
        return _figure.Plot(drawn)
