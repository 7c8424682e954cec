# SPDX-License-Identifier: Apache-2.0
"""Read traces of penstock, also those of a process that was killed, and of torch.profiler."""

from __future__ import annotations

import json
import math
import os
import zlib
from typing import Any, NamedTuple

from ._error import CorruptError, FormatError, InvalidError, LimitError, ReadWriteError

Event = dict[str, Any]
_MOST_BYTES = 8 << 30  # of text: what a compressed file may become


class TraceFile(NamedTuple):
    """The events of a file. `unix_us` is what has to be added to their times to get microseconds
    since 1970; None if the file does not tell."""

    path: str
    events: list[Event]
    unix_us: float | None
    is_penstock: bool
    rank: int | None


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except IsADirectoryError:
        raise InvalidError(
            f"trace {path!r}: expected a file that penstock.trace wrote, found a directory"
        ) from None
    except OSError as error:
        raise ReadWriteError(
            f"trace {path!r}: cannot open: {error.strerror}", os_errno=error.errno or 0
        ) from None
    if data[:2] == b"\x1f\x8b":
        gzip = zlib.decompressobj(31)
        try:
            data = gzip.decompress(data, _MOST_BYTES)
        except zlib.error as error:
            raise CorruptError(f"trace {path!r}: expected gzip: {error}") from None
        if gzip.unconsumed_tail:
            raise LimitError(f"trace {path!r}: expected at most {_MOST_BYTES} bytes of text")
    return data.decode("utf-8", "replace")


def _lines(text: str) -> list[Any]:
    """An array that may lack its end: one event a line."""
    found = []
    for line in text.split("\n")[1:]:
        try:
            found.append(json.loads(line.rstrip().removesuffix(",")))
        except ValueError:  # the last one may be cut; and the bracket
            continue
    return found


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _is_event(event: Any) -> bool:
    """Whether it has what all readers here rely on."""
    return (
        isinstance(event, dict)
        and isinstance(event.get("name", ""), str)
        and isinstance(event.get("ph"), str)
        and (event["ph"] == "M" or _number(event.get("ts")))
        and (event["ph"] != "X" or _number(event.get("dur")))
        and isinstance(event.get("args", {}), dict)
        and (event["ph"] == "M" or all(map(_is_plain, event.get("args", {}).values())))
        and _is_plain(event.get("pid"))
        and _is_plain(event.get("tid"))
    )


def _document(path: str, text: str) -> tuple[list[Any], float | None]:
    """(the events, of torch.profiler also the time of its zero)"""
    if text.startswith("[\n"):
        return _lines(text), None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, list):
        return whole, None
    if not isinstance(whole, dict) or not isinstance(whole.get("traceEvents"), list):
        raise FormatError(f"trace {path!r}: expected Chrome trace events as JSON, found other data")
    base = whole.get("baseTimeNanoseconds", 0)
    return whole["traceEvents"], base / 1000 if _number(base) else None


def about(events: list[Event], name: str) -> dict[str, Any]:
    """The arguments of the first metadata of this name."""
    for event in events:
        if event["ph"] == "M" and event.get("name") == name:
            args: dict[str, Any] = event.get("args", {})
            return args
    return {}


def read(path: str | os.PathLike[str]) -> TraceFile:
    path = os.fspath(path)
    found, unix_us = _document(path, _text(path))
    events = [event for event in found if _is_event(event)]
    if not events:
        raise FormatError(f"trace {path!r}: expected trace events, found none")
    head = about(events, "penstock")
    if head:
        offset = head.get("unix_minus_monotonic_us")
        unix_us = offset if _number(offset) else None
    rank = head.get("rank")
    return TraceFile(path, events, unix_us, bool(head), rank if isinstance(rank, int) else None)
