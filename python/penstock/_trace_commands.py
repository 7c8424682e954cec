# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock trace merge` and `penstock timeline`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import _timeline, _timeline_page, _trace_file, _trace_merge
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


def _draw(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="penstock timeline",
        description="Draw a trace: what each thread did over time, when the program waited for "
        "data, and tables of figures. Without -o it prints the tables.",
    )
    parser.add_argument("trace", metavar="TRACE", help=".json or .json.gz")
    parser.add_argument("-o", "--out", metavar="FILE", help="file to write: .html or .svg")
    args = parser.parse_args(words)
    if args.out and not args.out.endswith((".html", ".svg")):
        parser.error(f"-o: expected a name that ends in .html or .svg, found {args.out}")
    events = _trace_file.read(args.trace).events
    timeline = _timeline.analyse(events)
    _add_keys(timeline, events)
    if args.out and args.out.endswith(".svg"):
        _write(args.out, _timeline_page.svg(timeline))
    elif args.out:
        _write(args.out, _timeline_page.page(timeline, os.path.basename(args.trace)))
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
