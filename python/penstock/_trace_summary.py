# SPDX-License-Identifier: Apache-2.0
"""The figures of a trace: `penstock doctor run.json.gz`."""

from __future__ import annotations

import collections
import math
import shlex
import sys
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from . import _trace_file
from ._error import Error
from ._trace_file import Event

STAGES = ("request", "read", "verify", "decode", "resample", "store")
_SHARES = {"verify": "read", "resample": "decode", "store": "decode"}


class Process(NamedTuple):
    name: str
    figures: dict[str, Any]
    spans: dict[str, dict[str, float]]  # name: n, p50, p90, p99, max; in seconds
    stages: dict[str, float]  # seconds of all threads
    slowest: list[dict[str, Any]]  # samples


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted values: the one that so many of them do not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


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


def wait_name(spans: Collection[str]) -> str | None:
    """The span in which the program waits for data: another loader has no `next` inside."""
    return next((name for name in ("next", "next_data") if name in spans), None)


def gpu_percent(events: Sequence[Event]) -> list[tuple[float, float]]:
    """(seconds, mean over all GPUs) of each sample."""
    values: dict[float, list[float]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"] == "gpu_percent":
            found = event["args"].values()
            values[round(event["ts"] / 1e6, 1)] += [v for v in found if isinstance(v, (int, float))]
    return sorted((at, sum(v) / len(v)) for at, v in values.items() if v)


def bounds(spans: Sequence[Event]) -> tuple[float, float]:
    """(begin, end) in seconds"""
    begin = min(e["ts"] for e in spans)
    return begin / 1e6, max(e["ts"] + e["dur"] for e in spans) / 1e6


def _figures(spans: dict[str, list[float]], complete: Sequence[Event]) -> dict[str, Any]:
    """Those that the spans allow."""
    begin, end = bounds(complete)
    seconds = max(end - begin, 1e-6)
    figures: dict[str, Any] = {"elapsed time": seconds}
    if "decode" in spans:
        figures["samples"] = len(spans["decode"])
        figures["samples/s"] = len(spans["decode"]) / seconds
    sizes = [e.get("args", {}).get("bytes") for e in complete if e["name"] == "read"]
    reads = sum(size for size in sizes if isinstance(size, int))
    if reads:
        figures["MB/s"] = reads / seconds / 1e6
    wait = wait_name(spans)
    if wait:
        figures["batches"] = len(spans[wait])
        figures["waiting for data"] = min(1.0, sum(spans[wait]) / seconds)
    return figures


def _idle(events: Sequence[Event], spans: dict[str, list[float]], seconds: float) -> float | None:
    gpu = gpu_percent(events)
    if gpu:
        return 1 - sum(value for _, value in gpu) / len(gpu) / 100
    if "run_batch" in spans:
        return max(0.0, 1 - sum(spans["run_batch"]) / seconds)
    return None


def _process(name: str, events: Sequence[Event]) -> Process:
    complete = [e for e in events if e["ph"] == "X"]
    spans: dict[str, list[float]] = collections.defaultdict(list)
    for event in complete:
        spans[event["name"]].append(event["dur"] / 1e6)
    figures = _figures(spans, complete)
    idle = _idle(events, spans, figures["elapsed time"])
    if idle is not None:
        figures["accelerator idle"] = idle
    stages = _stages(complete, spans)
    return Process(name, figures, _statistics(spans), stages, _slowest(complete))


def by_process(events: Sequence[Event]) -> list[tuple[str, list[Event]]]:
    """(name, its events) of each process that has spans"""
    groups: dict[Any, list[Event]] = collections.defaultdict(list)
    for event in events:
        groups[str(event.get("pid"))].append(event)
    return [
        (str(_trace_file.about(group, "process_name").get("name") or f"process {pid}"), group)
        for pid, group in groups.items()
        if any(e["ph"] == "X" for e in group)
    ]


def analyse(events: Sequence[Event]) -> list[Process]:
    return [_process(name, group) for name, group in by_process(events)]


# ---- text


def time_text(seconds: float) -> str:
    if seconds >= 999.5:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _value(name: str, value: Any) -> str:
    if name in ("waiting for data", "accelerator idle"):
        return f"{value:.1%}"
    if name == "elapsed time":
        return time_text(value)
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:.3g}"


def _tables(process: Process) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows)"""
    figures = [[name, _value(name, value)] for name, value in process.figures.items()]
    stages = [[name, time_text(value)] for name, value in process.stages.items() if value]
    spans = [
        [name, f"{row['n']:,}", *(time_text(row[key]) for key in ("p50", "p90", "p99", "max"))]
        for name, row in process.spans.items()
    ]
    key = ["key"] if any("key" in row for row in process.slowest) else []  # if the pack is here
    slowest = [
        [str(s["sample"]), *(str(s[k]) for k in key), str(s["epoch"]), s["span"], time_text(s["s"])]
        for s in process.slowest
    ]
    return [
        ("Run", ["figure", "value"], figures),
        ("Time of all threads", ["stage", "time"], stages),
        ("Spans", ["span", "number", "p50", "p90", "p99", "longest"], spans),
        ("Slowest samples", ["sample", *key, "epoch", "span", "time"], slowest),
    ]


def text(processes: Sequence[Process]) -> str:
    lines: list[str] = []
    for process in processes:
        lines += [process.name, "=" * len(process.name)]
        for title, columns, rows in filter(lambda table: table[2], _tables(process)):
            lines += ["", title]
            cells = [columns, *rows]
            widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
            for row in cells:
                padded = [
                    cell.ljust(w) if i == 0 else cell.rjust(w)
                    for i, (cell, w) in enumerate(zip(row, widths, strict=True))
                ]
                lines.append("  " + "  ".join(padded).rstrip())
        lines.append("")
    return "\n".join(lines)


# ---- the command


def _pack_of(events: Sequence[Event]) -> str | None:
    """The path of the pack, if there is one."""
    paths = {str(e["args"].get("path")) for e in events if e["ph"] == "M" and e["name"] == "pack"}
    return paths.pop() if len(paths) == 1 else None


def _add_keys(processes: Sequence[Process], path: str) -> None:
    """Of the slowest samples, if the pack can be opened here."""
    from ._pack import open as open_pack

    try:
        with open_pack(path) as pack:
            for row in (row for process in processes for row in process.slowest):
                row["key"] = pack.key(row["sample"])
    except Exception:  # the figures are as good without
        return


def _next(processes: Sequence[Process], events: Sequence[Event], path: str) -> str | None:
    """The command that measures the pack with the same training step."""
    steps = [p.spans["run_batch"]["p50"] for p in processes if "run_batch" in p.spans]
    if not steps:
        return None
    batch = _trace_file.about(list(events), "loader").get("batch_size")
    size = f" --batch {batch}" if isinstance(batch, int) else ""
    consumer = max(max(steps) * 1e3, 0.001)
    return f"penstock doctor {shlex.quote(path)}{size} --consumer {consumer:.4g}"


def run(words: Sequence[str]) -> int:
    """The exit code."""
    try:
        events = _trace_file.read(words[1]).events
    except (Error, OSError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    processes = analyse(events)
    path = _pack_of(events)
    if path:
        _add_keys(processes, path)
    print(text(processes))
    command = _next(processes, events, path) if path else None
    if command:
        print(f"To measure the pack with this training step:\n  {command}")
    return 0
