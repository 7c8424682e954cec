# SPDX-License-Identifier: Apache-2.0
"""penstock.convert. It checks its arguments before it imports what the work needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _check
from .._error import InvalidError
from ._progress import Progress

_ON_BAD = ("stop", "skip")
_OWN = ("schema", "class_field", "task")  # settings of Writer that convert makes itself


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    format: str | None = None,
    *,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    key: str | None = None,
    label: str | None = None,
    classes: Sequence[str] | None = None,
    on_bad: str = "stop",
    max_bad: int | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    **settings: Any,
) -> Progress:
    """Convert a dataset of another library to a pack, with all samples and fields, in its order.

    source    a file, a folder, or a pattern such as "data/train-*.parquet"
    out       the pack to write
    format    None: found from the source. `penstock convert --help` lists the formats
    columns   the columns to store: a list of names, or a dict of name to type as for Writer, in
              which "" means the type found from the data; None: all columns
    key       the column with the keys, which must be unique; None: the keys of the dataset if it
              has some, or else numbers; "": numbers
    label     the column with the class numbers, or with class names, which are numbered in
              alphabetical order; None: as the dataset declares
    classes   class names, if the dataset has none or others are wanted
    on_bad    "stop": an image that cannot be decoded raises DecodeError; "skip": leave the row out
    max_bad   with on_bad="skip": fail if more rows are broken; None: 0.1 % of the rows, at least 10
    workers   number of processes; None: the cores available to this process. The pack is the same
              for any number
    progress  a function that is called several times a second
    settings  those of Writer

    If a run is interrupted, run it again.
    """
    _refuse(settings)
    chosen = _columns(columns)
    names = None if classes is None else _names("classes", classes)
    skip = _check.word("on_bad", on_bad, _ON_BAD) == "skip"
    limit = None if max_bad is None else _check.integer("max_bad", max_bad, 0, 2**63 - 1)
    n_workers = _cores() if workers is None else _check.integer("workers", workers, 1, 1024)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: expected a function, found {_check.shown(progress)}")
    from ._run import run

    return run(
        _check.path(source, "source"),
        _check.path(out, "out"),
        None if format is None else _check.text("format", format),
        chosen,
        None if key is None else _check.text("key", key),
        None if label is None else _check.text("label", label),
        names,
        limit if skip else -1,
        n_workers,
        progress,
        settings,
    )


def _refuse(settings: Mapping[str, Any]) -> None:
    for name in _OWN:
        if name in settings:
            raise TypeError(f"convert() has no argument {name!r}; see columns= and label=")


def _names(name: str, value: Any) -> list[str]:
    try:
        found = None if isinstance(value, (str, bytes)) else list(value)
    except Exception:
        found = None
    if found is None or not all(isinstance(one, str) for one in found):
        raise TypeError(f"{name}: expected a list of names, found {_check.shown(value)}")
    if len(set(found)) != len(found) or not found:
        raise InvalidError(f"{name}: expected different names, found {_check.shown(value)}")
    return found


def _columns(value: object) -> dict[str, str] | None:
    """Column to type, from a list of names or a dict."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return dict.fromkeys(_names("columns", value), "")
    names = _names("columns", value)
    types = [value[name] for name in names]
    if not all(isinstance(one, str) for one in types):
        raise TypeError(f"columns: expected types like image or i64, found {_check.shown(value)}")
    return dict(zip(names, types))


def _cores() -> int:
    return len(os.sched_getaffinity(0))
