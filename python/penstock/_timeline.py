# SPDX-License-Identifier: Apache-2.0
"""What a trace shows: figures of a run, and what each thread did over time."""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ._trace_file import Event, about

# Inside of another span of the loader's threads.
INNER = ("verify", "resample", "store", "wait_bytes")
# Spans of your program that the picture shows without what is inside of them.
_CLOSED = ("run_batch", "batch_to_device")
STAGES = ("request", "read", "verify", "decode", "resample", "store")
_SHARES = {"verify": "read", "resample": "decode", "store": "decode"}
COLUMNS = 800


class Lane(NamedTuple):
    """A thread, or all threads of a kind: in each column, seconds of each span."""

    name: str
    columns: list[dict[str, float]]


class Process(NamedTuple):
    name: str
    figures: dict[str, Any]
    lanes: list[Lane]
    columns: range  # those of its own time
    # In each column, the part of the time in which the program did not wait; empty if unknown.
    busy: list[float]
    gpu: list[tuple[float, float]]  # (seconds, percent)
    spans: dict[str, dict[str, float]]  # name: n, p50, p90, p99, max; in seconds
    stages: dict[str, float]  # seconds of all threads
    slowest: list[dict[str, Any]]  # samples


class Timeline(NamedTuple):
    seconds: float
    processes: list[Process]


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted values: the one that so many of them do not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


# ---- columns


class _Axis:
    """The time of the picture, cut into columns."""

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


def _lane(name: str, events: Iterable[Event], axis: _Axis) -> Lane:
    columns: list[dict[str, float]] = [{} for _ in range(COLUMNS)]
    for event in events:
        for i, seconds in axis.spread(event):
            columns[i][event["name"]] = columns[i].get(event["name"], 0.0) + seconds
    return Lane(name, columns)


# ---- figures


def _statistics(spans: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    found = {}
    for name, values in sorted(spans.items()):
        values.sort()
        found[name] = {
            "n": len(values),
            "p50": percentile(values, 0.5),
            "p90": percentile(values, 0.9),
            "p99": percentile(values, 0.99),
            "max": values[-1],
        }
    return found


def _stages(events: Sequence[Event], spans: dict[str, list[float]]) -> dict[str, float]:
    """Seconds of all threads in each stage. Those that are measured on some samples only have their
    part of the whole that these samples have."""
    found = {name: sum(spans.get(name, ())) for name in STAGES}
    timed = {_sample(e) for e in events if e["name"] in _SHARES}
    whole = dict.fromkeys(_SHARES.values(), 0.0)
    for event in events:
        if event["name"] in whole and _sample(event) in timed:
            whole[event["name"]] += event["dur"] / 1e6
    for name, outer in _SHARES.items():
        part = found[name] / whole[outer] if whole[outer] else 0.0
        found[name] = part * sum(spans.get(outer, ()))
    for name, outer in _SHARES.items():
        found[outer] -= found[name]
    return {name: max(0.0, seconds) for name, seconds in found.items()}


def _sample(event: Event) -> tuple[Any, Any]:
    args = event.get("args", {})
    return args.get("epoch"), args.get("sample")


def _slowest(events: Sequence[Event], n: int = 10) -> list[dict[str, Any]]:
    """The samples with the longest read or decode."""
    top = sorted(
        (e for e in events if e["name"] in ("read", "decode")), key=lambda e: -float(e["dur"])
    )[:n]
    return [
        {"sample": _sample(e)[1], "epoch": _sample(e)[0], "span": e["name"], "s": e["dur"] / 1e6}
        for e in top
    ]


def _idle(figures: dict[str, Any], gpu: list[tuple[float, float]], busy: float | None) -> None:
    if gpu:
        figures["accelerator idle"] = 1 - sum(value for _, value in gpu) / len(gpu) / 100
    elif busy is not None:
        figures["accelerator idle"] = max(0.0, 1 - busy / figures["elapsed time"])


def _wait_name(spans: Collection[str]) -> str | None:
    """The span in which the program waits for data: another loader has no `next` inside."""
    return next((name for name in ("next", "next_data") if name in spans), None)


def _figures(
    spans: dict[str, list[float]], reads: int, seconds: float, gpu: list[tuple[float, float]]
) -> dict[str, Any]:
    """Those that the spans allow."""
    figures: dict[str, Any] = {"elapsed time": seconds}
    if "decode" in spans:
        figures["samples"] = len(spans["decode"])
        figures["samples/s"] = len(spans["decode"]) / seconds
    if reads:
        figures["MB/s"] = reads / seconds / 1e6
    wait = _wait_name(spans)
    if wait:
        figures["batches"] = len(spans[wait])
        figures["waiting for data"] = min(1.0, sum(spans[wait]) / seconds)
    _idle(figures, gpu, sum(spans["run_batch"]) if "run_batch" in spans else None)
    return figures


# ---- a process


def _by_thread(events: Sequence[Event]) -> dict[str, list[Event]]:
    """The spans of each track, by its name; hundreds of threads that fetch are one."""
    names = {
        e.get("tid"): str(e.get("args", {}).get("name", ""))
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    found: dict[str, list[Event]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] != "X" or event["name"] in INNER:
            continue
        name = names.get(event.get("tid")) or f"thread {event.get('tid')}"
        if not name.startswith("fetch "):
            found[name].append(event)
        elif event["name"] != "wait_work":  # most of them wait at any time
            found["fetch"].append(event)
    return {name: list(_shown(spans)) for name, spans in found.items()}


def _shown(spans: list[Event]) -> Iterator[Event]:
    """Without those that are inside of a closed one."""
    until = -math.inf
    for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        end = event["ts"] + event["dur"]
        if end > until:
            yield event
        if event["name"] in _CLOSED:
            until = max(until, end)


def _rank_of(name: str) -> tuple[int, str, int]:
    """Your program first, then threads that decode, read and fetch, each by number."""
    kind, _, number = name.partition(" ")
    place = {"decode": 1, "read": 2, "fetch": 3}.get(kind, 0)
    return place, kind, int(number) if number.isdecimal() else 0


def _busy(program: list[Event], wait: str, axis: _Axis) -> list[float]:
    waits = [0.0] * COLUMNS
    for event in program:
        if event["name"] == wait:
            for i, seconds in axis.spread(event):
                waits[i] += seconds
    return [max(0.0, 1 - wait / axis.column) for wait in waits]


def _counter(events: Sequence[Event], name: str, axis: _Axis) -> list[tuple[float, float]]:
    """The mean over its series at each time."""
    values: dict[float, list[float]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"] == name:
            at = round(event["ts"] / 1e6 - axis.begin, 1)
            values[at] += [v for v in event["args"].values() if isinstance(v, (int, float))]
    return sorted((at, sum(v) / len(v)) for at, v in values.items() if v)


def _bounds(spans: Sequence[Event]) -> tuple[float, float]:
    """(begin, end) in seconds"""
    begin = min(e["ts"] for e in spans)
    return begin / 1e6, max(e["ts"] + e["dur"] for e in spans) / 1e6


def _process(name: str, events: Sequence[Event], axis: _Axis) -> Process:
    complete = [e for e in events if e["ph"] == "X"]
    spans: dict[str, list[float]] = collections.defaultdict(list)
    reads = 0
    for event in complete:
        spans[event["name"]].append(event["dur"] / 1e6)
        if event["name"] == "read":
            size = event.get("args", {}).get("bytes")
            reads += size if isinstance(size, int) else 0
    own = _Axis(*_bounds(complete))
    first = min(COLUMNS - 1, int((own.begin - axis.begin) / axis.column))
    threads = _by_thread(events)
    gpu = _counter(events, "gpu_percent", axis)
    wait = _wait_name(spans)
    return Process(
        name=name,
        figures=_figures(spans, reads, own.seconds, gpu),
        lanes=[_lane(key, threads[key], axis) for key in sorted(threads, key=_rank_of)],
        columns=range(first, min(COLUMNS, first + math.ceil(own.seconds / axis.column))),
        busy=_busy(complete, wait, axis) if wait else [],
        gpu=gpu,
        spans=_statistics(spans),
        stages=_stages(complete, spans),
        slowest=_slowest(complete),
    )


def analyse(events: Sequence[Event]) -> Timeline:
    timed = [e for e in events if e["ph"] == "X"]
    if not timed:
        return Timeline(0.0, [])
    axis = _Axis(*_bounds(timed))
    groups: dict[Any, list[Event]] = collections.defaultdict(list)
    for event in events:
        groups[str(event.get("pid"))].append(event)
    found = []
    for pid, group in groups.items():
        if any(e["ph"] == "X" for e in group):
            name = str(about(group, "process_name").get("name") or f"process {pid}")
            found.append(_process(name, group, axis))
    return Timeline(axis.seconds, found)
