# SPDX-License-Identifier: Apache-2.0
"""Join the traces of several ranks, and of torch.profiler, on one time axis: the command `penstock
trace merge`."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ._error import Error, InvalidError
from ._trace_file import Event, TraceFile, read


class _Numbers:
    """Numbers of processes that are unique over all files: each keeps its own if it can."""

    def __init__(self) -> None:
        self._used: dict[int, str] = {}  # number: the file that has it
        self._given: dict[tuple[str, Any], int] = {}
        self._next = 1 << 22  # above all numbers of Linux

    def of(self, file: str, pid: Any, shared: set[int]) -> int:
        """`shared` are numbers of another file that mean the same processes."""
        key = file, pid
        if key not in self._given:
            self._given[key] = self._choose(file, pid, shared)
        return self._given[key]

    def _choose(self, file: str, pid: Any, shared: set[int]) -> int:
        own = isinstance(pid, int) and (pid not in self._used or pid in shared)
        if not own:
            self._next += 1
        number = pid if own else self._next
        self._used.setdefault(number, file)
        return int(number)


def _pids(file: TraceFile) -> set[int]:
    return {event["pid"] for event in file.events if isinstance(event.get("pid"), int)}


def _moved(
    file: TraceFile, number: int, n_files: int, base_us: float, numbers: _Numbers, shared: set[int]
) -> Iterator[Event]:
    """The events of a file on the common time axis, with numbers of processes and of asynchronous
    spans that no other file has."""
    named = set()
    # First the difference: microseconds since 1970 have no room for nanoseconds in a float.
    shift_us = (file.unix_us or 0) - base_us
    for event in file.events:
        moved = dict(event)
        pid = event.get("pid", "")
        moved["pid"] = numbers.of(file.path, pid, shared)
        if isinstance(pid, str) and pid not in named:
            named.add(pid)
            yield {
                "ph": "M",
                "pid": moved["pid"],
                "name": "process_name",
                "args": {"name": pid or os.path.basename(file.path)},
            }
        if "ts" in event:
            moved["ts"] = round(event["ts"] + shift_us, 3)
        if isinstance(event.get("id"), int):
            moved["id"] = event["id"] * n_files + number
        yield moved


def _begin(file: TraceFile) -> float:
    times = [event["ts"] for event in file.events if event["ph"] != "M"]
    return (min(times) if times else 0.0) + (file.unix_us or 0)


def _check(files: Sequence[TraceFile]) -> None:
    if len(files) < 2:
        return
    for file in files:
        if file.unix_us is None:
            raise InvalidError(
                f"trace {file.path!r}: expected the time of its clock (a trace of penstock or of "
                "torch.profiler), found none"
            )


def merged(files: Sequence[TraceFile]) -> list[Event]:
    """All events; times count from the first of them."""
    _check(files)
    base_us = min(_begin(file) for file in files)
    numbers = _Numbers()
    # Ranks first: a profile of the same process then joins its tracks.
    files = sorted(files, key=lambda file: (not file.is_penstock, file.rank or 0))
    ranks = {pid for file in files if file.is_penstock for pid in _pids(file)}
    found: list[Event] = []
    for number, file in enumerate(files):
        shared = set() if file.is_penstock else ranks
        found += _moved(file, number, len(files), base_us, numbers, shared)
    note = {"base_unix_us": round(base_us), "files": [os.path.basename(f.path) for f in files]}
    found.append({"ph": "M", "pid": 0, "name": "penstock_merged", "args": note})
    return found


def write(events: Sequence[Event], path: str) -> None:
    """One event a line, as the loader writes them."""
    compressed = path.endswith(".gz")
    with gzip.open(path, "wt", 1) if compressed else open(path, "w", encoding="ascii") as file:
        file.write("[\n")
        file.write(",\n".join(json.dumps(event, separators=(",", ":")) for event in events))
        file.write("\n]\n")


def merge(paths: Sequence[str], out: str) -> int:
    """Returns the number of events. With one path it repairs the trace of a killed process."""
    for path in paths:
        if os.path.exists(out) and os.path.samefile(path, out):
            raise InvalidError(f"-o {out!r} is one of the traces; choose another name")
    events = merged([read(path) for path in paths])
    write(events, out)
    return len(events)


def run(words: Sequence[str]) -> int:
    """The exit code."""
    if words[1:2] != ["merge"]:
        print("penstock: trace: expected 'penstock trace merge'", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(
        prog="penstock trace merge",
        description="Join the traces of several ranks, and of torch.profiler, on one time axis. "
        "With one trace, repair that of a process that was killed.",
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help=".json or .json.gz")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="trace to write")
    args = parser.parse_args(words[2:])
    try:
        n = merge(args.traces, args.out)
    except (Error, OSError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    print(f"{args.out}: {n:,} events of {len(args.traces)} traces")
    return 0
