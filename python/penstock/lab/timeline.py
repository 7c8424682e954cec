# SPDX-License-Identifier: Apache-2.0
"""What each thread of a traced program did over time, as a plot."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator, Sequence

from .. import _trace_summary
from .._trace_file import Event
from . import plots
from .errors import LabError

# Okabe and Ito's colors, which people with any color vision tell apart. Waits are pale.
COLORS = {
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
    "other spans": "#777777",
}
COLUMNS = 800
# Inside of another span of the loader's threads.
_INNER = ("verify", "resample", "store", "wait_bytes")
# Spans of a program that are shown without what is inside of them.
_CLOSED = ("run_batch", "batch_to_device")
# What is left of the outer span when these, inside of it, are counted.
_INSIDE = {"next_data": ("next",), "get_batch": ("request", "read", "decode")}
NOTE = "What took most of each moment. White: no span."


class _Axis:
    """The time of the plot, cut into columns."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin = begin
        self.seconds = max(end - begin, 1e-6)
        self.column = self.seconds / COLUMNS

    def spread(self, event: Event) -> Iterable[tuple[int, float]]:
        """(column, seconds of the event in it)"""
        at = event["ts"] / 1e6 - self.begin
        end = min(at + event["dur"] / 1e6, self.seconds)
        at = max(at, 0.0)
        i = int(at / self.column)
        while at < end and i < COLUMNS:
            edge = min(end, (i + 1) * self.column)
            yield i, edge - at
            at, i = edge, i + 1


# ---- threads


def _shown(spans: list[Event]) -> Iterator[Event]:
    """Without those that are inside of a closed one."""
    until = -math.inf
    for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        end = event["ts"] + event["dur"]
        if end > until:
            yield event
        if event["name"] in _CLOSED:
            until = max(until, end)


def _by_thread(events: Sequence[Event]) -> dict[str, list[Event]]:
    """The spans of each track, by its name; hundreds of threads that fetch are one."""
    names = {
        e.get("tid"): str(e.get("args", {}).get("name", ""))
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    found: dict[str, list[Event]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] != "X" or event["name"] in _INNER:
            continue
        name = names.get(event.get("tid")) or f"thread {event.get('tid')}"
        if not name.startswith("fetch "):
            found[name].append(event)
        elif event["name"] != "wait_work":  # most of them wait at any time
            found["fetch"].append(event)
    return {name: list(_shown(spans)) for name, spans in found.items()}


def _rank_of(name: str) -> tuple[int, str, int]:
    """The program first, then threads that decode, read and fetch, each by number."""
    kind, _, number = name.partition(" ")
    place = {"decode": 1, "read": 2, "fetch": 3}.get(kind, 0)
    return place, kind, int(number) if number.isdecimal() else 0


# ---- lanes


def _longest(column: dict[str, float]) -> str:
    """The span that takes most of a column."""
    shares = dict(column)
    for outer, inner in _INSIDE.items():
        if outer in shares:
            shares[outer] -= sum(column.get(name, 0.0) for name in inner)
    name = max(shares, key=lambda name: shares[name]) if shares else ""
    return name if name in COLORS or not name else "other spans"


def _lane(name: str, events: Iterable[Event], axis: _Axis) -> plots.Lane:
    columns: list[dict[str, float]] = [{} for _ in range(COLUMNS)]
    for event in events:
        for i, seconds in axis.spread(event):
            columns[i][event["name"]] = columns[i].get(event["name"], 0.0) + seconds
    spans, first, current = [], 0, ""
    for i, kind in enumerate([*map(_longest, columns), ""]):
        if kind == current and i < COLUMNS:
            continue
        if current:
            spans.append(plots.Span(current, first * axis.column, (i - first) * axis.column))
        first, current = i, kind
    return plots.Lane(name, spans)


def _gpu(events: Sequence[Event], axis: _Axis) -> list[plots.Lane]:
    """Means: there may be thousands of samples."""
    step = axis.seconds / 100
    values: dict[int, list[float]] = collections.defaultdict(list)
    for at, percent in _trace_summary.gpu_percent(events):
        values[int((at - axis.begin) / step)].append(percent)
    points = [((i + 0.5) * step, sum(v) / len(v)) for i, v in sorted(values.items())]
    return [plots.Lane("GPU, 0 to 100 %", [], points)] if points else []


def lanes(events: Sequence[Event]) -> list[plots.Lane]:
    """One for each thread, below the name of its process; the utilization of GPUs first."""
    processes = _trace_summary.by_process(events)
    if not processes:
        raise LabError("cannot draw the trace: expected spans, found none")
    axis = _Axis(*_trace_summary.bounds([e for e in events if e["ph"] == "X"]))
    found: list[plots.Lane] = []
    for name, group in processes:
        threads = _by_thread(group)
        found.append(plots.Lane(name, [], heading=True))
        found += _gpu(group, axis)
        found += [_lane(key, threads[key], axis) for key in sorted(threads, key=_rank_of)]
    return found


def plot(events: Sequence[Event], title: str) -> plots.Plot:
    return plots.timeline(title, lanes(events), NOTE, COLORS)
