# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock trace merge` and `penstock timeline`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import (
    _timeline,
    _timeline_page,
    _timeline_picture,
    _timeline_png,
    _timeline_svg,
    _trace_file,
    _trace_merge,
)
from ._error import Error


def _merge(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="penstock trace merge",
        description="Join the traces of several ranks, and of torch.profiler, on one time axis. "
        "With one trace, repair that of a process that was killed.",
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help=".json or .json.gz")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="trace to write")
    args = parser.parse_args(words)
    n = _trace_merge.merge(args.traces, args.out)
    print(f"{args.out}: {n:,} events of {len(args.traces)} traces")


def _add_keys(timeline: _timeline.Timeline, events: Sequence[_trace_file.Event]) -> None:
    """Of the slowest samples, if there is one pack and it can be opened here."""
    paths = {str(e["args"].get("path")) for e in events if e["ph"] == "M" and e["name"] == "pack"}
    if len(paths) != 1:
        return
    try:
        from ._pack import open as open_pack

        with open_pack(paths.pop()) as pack:
            for process in timeline.processes:
                for row in process.slowest:
                    row["key"] = pack.key(row["sample"])
    except Exception:  # the figures are as good without
        return


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _write_page(path: str, timeline: _timeline.Timeline, title: str) -> None:
    _write(path, _timeline_page.page(timeline, title))


def _write_svg(path: str, timeline: _timeline.Timeline, _title: str) -> None:
    _write(path, _timeline_svg.svg(_timeline_picture.draw(timeline)))


def _write_png(path: str, timeline: _timeline.Timeline, _title: str) -> None:
    _timeline_png.write(path, _timeline_picture.draw(timeline))


_WRITERS = {".html": _write_page, ".svg": _write_svg, ".png": _write_png}


def _draw(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="penstock timeline",
        description="Draw a trace: what each thread did over time, when the program waited for "
        "data, and tables of figures. Without -o it prints the tables.",
    )
    parser.add_argument("trace", metavar="TRACE", help=".json or .json.gz")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="file to write: .html, .svg, or .png (by matplotlib)"
    )
    args = parser.parse_args(words)
    write = _WRITERS.get(os.path.splitext(args.out or "")[1])
    if args.out and write is None:
        parser.error(f"-o: expected a name that ends in .html, .svg or .png, found {args.out}")
    events = _trace_file.read(args.trace).events
    timeline = _timeline.analyse(events)
    _add_keys(timeline, events)
    if write:
        write(args.out, timeline, os.path.basename(args.trace))
    else:
        print(_timeline_page.text(timeline))


COMMANDS: dict[tuple[str, ...], Callable[[Sequence[str]], Any]] = {
    ("trace", "merge"): _merge,
    ("timeline",): _draw,
}


def run(words: Sequence[str]) -> int | None:
    """The exit code; None if it is no command of Python's."""
    if words[:1] == ["trace"] and words[1:2] != ["merge"]:
        print("penstock: trace: expected 'penstock trace merge'", file=sys.stderr)
        return 2
    for name, call in COMMANDS.items():
        if tuple(words[: len(name)]) != name:
            continue
        try:
            call(words[len(name) :])
        except (Error, OSError) as error:
            print(f"penstock: {error}", file=sys.stderr)
            return 1
        return 0
    return None
