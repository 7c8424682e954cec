# SPDX-License-Identifier: Apache-2.0
"""Measured configurations: the cells of reports of `penstock-lab load`."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from ..errors import LabError
from ..experiment import checked, report, results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..experiment.statistics import Summary, summary
from ..experiment.sweep import label

# Loaders that read nothing: they show what the rest of a loop allows.
CEILINGS = ("synthetic",)


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One cell. Seconds of processor time for 1,000 images are milliseconds for one."""

    cell: Cell
    machine: dict[str, Any]
    rate: Summary
    cpu_ms: float
    image_bytes: float
    bottleneck: str
    run: str = ""  # of several runs that have this cell

    @property
    def name(self) -> str:
        return label(self.cell) + (f" ({self.run})" if self.run else "")

    def cores_for(self, rate: float) -> float:
        """Cores that are busy at a rate."""
        return rate * self.cpu_ms / 1000

    def megabytes_for(self, rate: float) -> float:
        """MB/s of the storage at a rate."""
        return rate * self.image_bytes / 1e6


def find(places: Sequence[str]) -> list[list[Line]]:
    """The reports of files and folders, at any depth, that ask the question "load"."""
    found = []
    for place in places:
        path = pathlib.Path(place)
        inside = sorted(path.rglob(report.NAME)) if path.is_dir() else [path]
        loads = [lines for lines in map(checked.read, inside) if lines[0]["question"] == "load"]
        if not loads:
            raise LabError(f"'{place}' has no report of 'penstock-lab load'. Measure first: "
                           "penstock-lab load SOURCE")
        found += loads
    return found


def _last(lines: list[Line], field: str, otherwise: Any) -> Any:
    return next((line[field] for line in reversed(lines) if field in line), otherwise)


def _configuration(lines: list[Line], cell: Cell) -> Configuration | None:
    """None if the cell was not measured, or lacks what advice is made of."""
    rates, cpu = results.rates(lines, cell), results.cpu_per_1000(lines, cell)
    prepared, first = (results.of_cell(lines, cell, kind) for kind in ("prepared", "first"))
    stored = _last(prepared, "stored_mb", None)
    images = _last(first, "samples", 0)
    if not rates or cpu is None or stored is None or not images:
        return None
    turns = results.turns_of(lines, cell)
    return Configuration(
        cell, lines[0]["machine"], summary(rates), cpu, stored * 1e6 / images,
        str(_last(turns, "bottleneck", "unknown")),
    )


def matches(cell: Cell, where: Sequence[str]) -> bool:
    """Whether a cell has all 'axis=value'."""
    for condition in where:
        axis, equals, value = condition.partition("=")
        if not equals:
            raise LabError(f"--where: expected AXIS=VALUE, found '{condition}'")
        if str(cell.get(axis)) != value:
            return False
    return True


def with_most_threads(found: Sequence[Configuration]) -> list[Configuration]:
    """Cells that differ in the threads alone become one: the most threads, without that axis."""
    best: dict[str, Configuration] = {}
    for one in sorted(found, key=lambda one: int(one.cell.get("threads", 0))):
        rest = {axis: value for axis, value in one.cell.items() if axis != "threads"}
        best[label(rest)] = dataclasses.replace(one, cell=rest)
    return list(best.values())


def warnings(reports: list[list[Line]]) -> list[str]:
    """What may have disturbed the figures of the reports."""
    return [f"{lines[0]['name']}: {text}" for lines in reports
            for text in results.all_warnings(lines)]


def _told_apart(found: list[tuple[str, Configuration]]) -> list[Configuration]:
    """Those that several runs measured have the names of the runs."""
    names = [one.name for _, one in found]
    return [dataclasses.replace(one, run=run) if names.count(one.name) > 1 else one
            for run, one in found]


def from_reports(reports: list[list[Line]], where: Sequence[str] = ()) -> list[Configuration]:
    found = [
        (str(lines[0]["name"]), made)
        for lines in reports
        for cell in results.cells(lines).values()
        if cell.get("loader") not in CEILINGS and matches(cell, where)
        if (made := _configuration(lines, cell)) is not None
    ]
    if not found:
        axes = dict.fromkeys(axis for lines in reports for cell in results.cells(lines).values()
                             for axis in cell)
        raise LabError(f"no measured cell matches; the reports have the axes {', '.join(axes)}")
    return _told_apart(found)
