# SPDX-License-Identifier: Apache-2.0
"""The picture of a timeline: where its rectangles, lines and texts are. Other files write them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ._timeline import COLUMNS, Lane, Process, Timeline

# Okabe and Ito's colours, which people with any colour vision tell apart. Waits are pale.
COLOURS = {
    "run_batch": "#e69f00",
    "batch_to_device": "#cc79a7",
    "next_data": "#f0e442",
    "next": "#d55e00",
    "get_batch": "#332288",
    "decode": "#0072b2",
    "read": "#009e73",
    "request": "#56b4e9",
    "wait_slot": "#b0b0b0",
    "wait_queue": "#cfcfcf",
    "wait_work": "#eeeeee",
}
_OTHER = "#777777"
_GPU = "#d55e00"
WIDTH = 1180
_LEFT, _RIGHT, _ROW, _GAP = 120, 60, 16, 4
_USE = 60  # height of the lines of utilization
_CHARACTER = 7.2  # width of a letter, at most, on average
_STEP = 8  # columns of one point of these lines
_STALL = 0.5  # of a column: more than this part is spent waiting for data
_STALL_COLOUR = "#f9dfcc"
# What is left of the outer span when these, inside of it, are counted.
_INSIDE = {"next_data": ("next",), "get_batch": ("request", "read", "decode")}


class Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    fill: str | None
    stroke: str | None = None
    title: str = ""


class Text(NamedTuple):
    x: float
    y: float  # of the base line
    text: str
    anchor: str = "start"  # or middle, or end
    bold: bool = False


class Line(NamedTuple):
    points: Sequence[tuple[float, float]]
    stroke: str
    width: float = 1.5


Shape = Rect | Text | Line


class Picture(NamedTuple):
    width: float
    height: float
    shapes: list[Shape]


class _Frame(NamedTuple):
    """Where the time is, from left to right."""

    left: float
    width: float

    def at(self, part: float) -> float:
        return self.left + part * self.width

    def column(self, i: float) -> float:
        return self.at(i / COLUMNS)

    @property
    def right(self) -> float:
        return self.left + self.width


def colour(name: str) -> str:
    return COLOURS.get(name, _OTHER)


def ticks(seconds: float, most: int = 12) -> list[float]:
    """Round times, about as many."""
    step = 10 ** math.floor(math.log10(max(seconds, 1e-6)))
    parts = (part for part in (0.1, 0.2, 0.5, 1, 2) if seconds / (step * part) <= most)
    step *= next(parts, 5)
    return [i * step for i in range(int(seconds / step) + 1)]


# ---- lanes


def _longest(column: dict[str, float]) -> str:
    """The span that takes most of a column."""
    shares = dict(column)
    for outer, inner in _INSIDE.items():
        if outer in shares:
            shares[outer] -= sum(column.get(name, 0.0) for name in inner)
    return max(shares, key=lambda name: shares[name]) if shares else ""


def _runs(lane: Lane) -> Iterator[tuple[int, int, str]]:
    """(first column, end, the span that takes most of them)"""
    first, current = 0, ""
    for i in range(COLUMNS + 1):
        name = _longest(lane.columns[i]) if i < COLUMNS else ""
        if i < COLUMNS and name == current:
            continue
        if current:
            yield first, i, current
        first, current = i, name


def _lane(lane: Lane, frame: _Frame, top: float) -> list[Shape]:
    shapes: list[Shape] = [Text(frame.left - 8, top + 12, _short(lane.name), "end")]
    for first, end, name in _runs(lane):
        x = frame.column(first)
        shapes.append(Rect(x, top, frame.column(end) - x, _ROW, colour(name), title=name))
    return shapes


def _short(name: str) -> str:
    return name if len(name) <= 14 else name[:13] + "…"


# ---- utilization


def _line(points: Sequence[tuple[float, float]], stroke: str, top: float) -> Line:
    """`points`: (x, part of the height)"""
    return Line([(x, top + _USE * (1 - min(1.0, y))) for x, y in points], stroke)


def _busy_points(process: Process, frame: _Frame) -> Iterator[tuple[float, float]]:
    """Means of some columns each."""
    end = process.columns.stop
    for i in range(process.columns.start, end, _STEP):
        part = process.busy[i : min(i + _STEP, end)]
        yield frame.column(i + len(part) / 2), sum(part) / len(part)


def _gpu_points(
    process: Process, seconds: float, frame: _Frame
) -> Iterator[tuple[float, float]]:
    """The same of the samples, of which there may be thousands."""
    step = seconds * _STEP / COLUMNS
    for _, group in itertools.groupby(process.gpu, key=lambda sample: int(sample[0] / step)):
        part = list(group)
        at = sum(at for at, _ in part) / len(part)
        yield frame.at(at / seconds), sum(value for _, value in part) / len(part) / 100


def _use(process: Process, seconds: float, frame: _Frame, top: float) -> list[Shape]:
    """Utilization, with its axis on the right; nothing if it is not known."""
    if not process.busy and not process.gpu:
        return []
    shapes: list[Shape] = [
        Text(frame.left - 8, top + _USE / 2 + 4, "utilization", "end"),
        Rect(frame.left, top, frame.width, _USE, None, "#999999"),
    ]
    for percent in (0, 50, 100):
        y = top + _USE * (1 - percent / 100)
        shapes.append(Text(frame.right + 6, y + 4, f"{percent} %"))
    if process.busy:
        shapes.append(_line(list(_busy_points(process, frame)), "#000000", top))
    if process.gpu:
        shapes.append(_line(list(_gpu_points(process, seconds, frame)), _GPU, top))
    return shapes


def _stalls(process: Process, frame: _Frame, top: float, height: float) -> list[Shape]:
    shapes: list[Shape] = []
    first = None
    for i in range(COLUMNS + 1):
        stalled = i < len(process.busy) and process.busy[i] < 1 - _STALL
        if stalled and first is None:
            first = i
        elif not stalled and first is not None:
            x = frame.column(first)
            shapes.append(Rect(x, top, frame.column(i) - x, height, _STALL_COLOUR))
            first = None
    return shapes


def _process(
    process: Process, seconds: float, frame: _Frame, top: float
) -> tuple[list[Shape], float]:
    """(its shapes, where they end)"""
    use = _use(process, seconds, frame, top + 20)
    shapes: list[Shape] = [Text(4, top + 12, process.name, bold=True)]
    top += 20
    at = top + (_USE + _GAP if use else 0)
    height = at - top + len(process.lanes) * (_ROW + _GAP)
    shapes += _stalls(process, frame, top, height)  # first, so that the colours of lanes stay
    shapes += use
    for lane in process.lanes:
        shapes += _lane(lane, frame, at)
        at += _ROW + _GAP
    return shapes, top + height + 10


# ---- below


def _axis(seconds: float, frame: _Frame, top: float) -> list[Shape]:
    shapes: list[Shape] = []
    for at in ticks(seconds, int(frame.width / 80)):
        x = frame.at(at / seconds)
        shapes.append(Line([(x, top), (x, top + 5)], "#333333", 1))
        shapes.append(Text(x, top + 18, f"{at:g} s", "middle"))
    return shapes


def _entries(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """(name, its color) of what is in the picture"""
    lanes = [lane for process in timeline.processes for lane in process.lanes]
    used = {name for lane in lanes for column in lane.columns for name in column}
    yield from ((name, colour(name)) for name in COLOURS if name in used)
    if used - COLOURS.keys():
        yield "other spans", _OTHER
    yield "background: mostly waiting for data", _STALL_COLOUR


def _legend(timeline: Timeline, frame: _Frame, top: float) -> tuple[list[Shape], float]:
    shapes: list[Shape] = []
    x = frame.left
    for name, fill in _entries(timeline):
        width = 32 + _CHARACTER * len(name)
        if x + width > frame.right + _RIGHT:
            x, top = frame.left, top + 20
        shapes += [Rect(x, top, 12, 12, fill), Text(x + 16, top + 10, name)]
        x += width
    lines = ["black line: part of the time in which the program did not wait for data"]
    if any(process.gpu for process in timeline.processes):
        lines.append("red line: GPU utilization")
    for line in lines:
        top += 20
        shapes.append(Text(frame.left, top + 10, line))
    return shapes, top + 20


def draw(timeline: Timeline, width: float = WIDTH) -> Picture:
    """At least 600 wide."""
    frame = _Frame(_LEFT, width - _LEFT - _RIGHT)
    shapes: list[Shape] = []
    top = 10.0
    for process in timeline.processes:
        more, top = _process(process, timeline.seconds, frame, top)
        shapes += more
    shapes += _axis(timeline.seconds, frame, top)
    more, top = _legend(timeline, frame, top + 30)
    return Picture(width, top, shapes + more)
