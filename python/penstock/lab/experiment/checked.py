# SPDX-License-Identifier: Apache-2.0
"""Reports that were checked. A report is input from anywhere: each field that is used is checked
here, and an error names the file and the line."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from ..errors import LabError
from . import report
from .report import Line

LARGEST_REPORT = 256 << 20  # bytes
_LARGEST = 1e18


def _is_number(value: Any) -> bool:
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and -_LARGEST < value < _LARGEST)


def _is_cell(value: Any) -> bool:
    return isinstance(value, dict) and all(
        one is None or isinstance(one, (str, bool)) or _is_number(one) for one in value.values())


# Field, what it is, and the words for it. A field may be absent unless _NEEDED has it.
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "cell": (_is_cell, "an object of texts and finite numbers"),
    "command": (lambda v: isinstance(v, list) and all(isinstance(w, str) for w in v),
                "a list of texts"),
    "cpu": (_is_number, "a finite number"),
    "date": (lambda v: isinstance(v, str), "a text"),
    "inputs": (lambda v: isinstance(v, list) and all(isinstance(i, dict) for i in v),
               "a list of objects"),
    "machine": (lambda v: isinstance(v, dict), "an object"),
    "name": (lambda v: isinstance(v, str), "a text"),
    "parameters": (lambda v: isinstance(v, dict), "an object"),
    "question": (lambda v: isinstance(v, str), "a text"),
    "reason": (lambda v: isinstance(v, str), "a text"),
    "round": (lambda v: isinstance(v, int) and not isinstance(v, bool), "a whole number"),
    "samples": (lambda v: _is_number(v) and v >= 0, "a finite number of at least 0"),
    "seconds": (lambda v: _is_number(v) and v >= 0, "a finite number of at least 0"),
    "versions": (lambda v: isinstance(v, dict), "an object"),
    "wall": (_is_number, "a finite number"),
    "other_cpu": (_is_number, "a finite number"),
    "load_before": (_is_number, "a finite number"),
}
_NEEDED = {
    "parameters": ("question", "name", "parameters", "machine", "versions", "command", "date"),
    "turn": ("cell", "round", "seconds", "samples"),
    "resumed": ("load_before",),
    "absent": ("reason",),
}


def _check(line: Line) -> None:
    for name in _NEEDED.get(str(line["kind"]), ()):
        if name not in line:
            raise LabError(f"a line of kind {line['kind']!r} needs {name!r}, which is missing")
    for name, value in line.items():
        fits, words = _FIELDS.get(name, (None, ""))
        if fits and not fits(value):
            raise LabError(f"{name!r}: expected {words}, found {str(value)[:60]!r}")
    if line["kind"] == "parameters":
        load = line["machine"].get("load_before", 0.0)
        if not _is_number(load):
            raise LabError(f"'load_before': expected a finite number, found {str(load)[:60]!r}")


def read(path: pathlib.Path) -> list[Line]:
    """The lines of a report, checked."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise LabError(f"cannot read report '{path}': {error.strerror}") from None
    if size > LARGEST_REPORT:
        raise LabError(f"cannot read report '{path}': it has {size:,} bytes, expected at most "
                       f"{LARGEST_REPORT:,}")
    lines = report.read(path)
    for number, line in enumerate(lines, 1):
        try:
            _check(line)
        except LabError as error:
            raise LabError(f"cannot read report '{path}': line {number}: {error}. Remove the "
                           "report, or measure again") from None
    return lines


def find(folder: pathlib.Path) -> list[pathlib.Path]:
    """All reports below a folder."""
    if not folder.is_dir():
        raise LabError(f"cannot read '{folder}': expected a folder with runs of penstock-lab")
    found = sorted(folder.rglob(report.NAME))
    if not found:
        raise LabError(f"no {report.NAME} below '{folder}': expected a folder with runs of "
                       "penstock-lab, such as the --out of 'penstock-lab load'")
    return found
