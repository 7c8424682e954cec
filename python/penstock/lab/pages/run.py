# SPDX-License-Identifier: Apache-2.0
"""The part of a page that shows one run."""

from __future__ import annotations

import collections
import math
import pathlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import plots
from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..experiment.statistics import summary
from . import verdicts
from .blocks import Block, Command, Heading, Notice, Picture, Table, Text
from .figures import interval, number

MOST_BARS = 24
MOST_COLUMNS = 14
# Further figures of turns: the field, how the table calls it, and the factor.
_FIGURES = (
    ("idle", "idle %", 100.0),
    ("top1", "top-1 %", 1.0),
    ("top5", "top-5 %", 1.0),
    ("utilization", "AU %", 100.0),
    ("joules", "J", 1.0),
)
_BARS_NOTE = "Bars: mean of the turns. Lines: 95 % interval of the mean."


def name_of(cell: Cell, axes: Sequence[str]) -> str:
    """A cell by the axes that vary."""
    return ", ".join(f"{cell[axis]}" if axis == "loader" else f"{axis} {cell[axis]}"
                     for axis in axes if axis in cell) or "all"


def _varying(cells: Sequence[Cell]) -> list[str]:
    return [axis for axis in verdicts.axes(cells)
            if len({str(cell.get(axis)) for cell in cells}) > 1]


def _mark(lines: list[Line], cell: Cell) -> str:
    return " (simulated)" if verdicts.is_simulated(lines, cell) else ""


# ---- the machine and the inputs


def _about(head: Line) -> str:
    machine, versions = head["machine"], head["versions"]
    commit = f", commit {versions['commit']}" if versions.get("commit") else ""
    return (f"{machine.get('cpu', 'unknown processor')}, {machine.get('cores', '?')} cores, "
            f"{machine.get('memory_gb', '?')} GB, kernel {machine.get('kernel', '?')}; "
            f"penstock {versions.get('penstock', '?')}{commit}; {head['date']}; load average "
            f"{machine.get('load_before', '?')} before the run.")


def _inputs(head: Line) -> Iterator[Block]:
    rows = [[str(entry.get(name, "")) for name in ("path", "samples", "bytes", "id")]
            for entry in head.get("inputs", [])]
    if rows:
        yield Table(["input", "samples", "bytes", "id"], rows)


# ---- turns


def _row(lines: list[Line], cell: Cell, axes: Sequence[str]) -> list[str]:
    rates, first = results.rates(lines, cell), results.of_cell(lines, cell, "first")
    found = summary(rates)
    cpu = results.cpu_per_1000(lines, cell)
    began = first[0].get("seconds") if first else None
    return [
        name_of(cell, axes) + _mark(lines, cell), str(found.n), number(found.mean),
        number(found.sd), interval(found), "-" if cpu is None else number(cpu),
        "-" if began is None else number(began),
    ]


def _rates(lines: list[Line], cells: Sequence[Cell]) -> Iterator[Block]:
    axes = _varying(cells)
    header = ["cell", "n", "samples/s", "sd", "95 % interval", "CPU s per 1,000", "first epoch s"]
    yield Table(header, [_row(lines, cell, axes) for cell in cells])
    axis = verdicts.compared(cells)
    bars = [plots.Bar(name_of(cell, axes), found.mean,
                      None if math.isnan(found.low) else max(0.0, found.low),
                      None if math.isnan(found.high) else found.high,
                      str(cell.get(axis, "")), verdicts.is_simulated(lines, cell))
            for cell in cells[:MOST_BARS] for found in [summary(results.rates(lines, cell))]]
    more = f" The first {MOST_BARS} of {len(cells)} cells." if len(cells) > MOST_BARS else ""
    yield Picture(plots.bars("Rate", "samples/s, higher is better", bars, _BARS_NOTE).svg(),
                  f"Samples per second of each cell.{more}")


def _field(lines: list[Line], cell: Cell, field: str) -> list[Any]:
    """The values that the turns of a cell have for a field."""
    return [turn[field] for turn in results.of_cell(lines, cell, "turn") if field in turn]


def _values(lines: list[Line], cell: Cell, field: str) -> list[float]:
    return [float(value) for value in _field(lines, cell, field)
            if isinstance(value, (int, float)) and math.isfinite(value)]


def _figures(lines: list[Line], cells: Sequence[Cell]) -> Iterator[Block]:
    """Further figures of the turns, each with its spread, and the bottleneck."""
    axes, rows, limits = _varying(cells), [], []
    for field, title, factor in _FIGURES:
        for cell in cells:
            values = [factor * value for value in _values(lines, cell, field)]
            if values:
                found = summary(values)
                rows.append([name_of(cell, axes) + _mark(lines, cell), title, str(found.n),
                             number(found.mean), number(found.sd), interval(found)])
    if rows:
        yield Table(["cell", "figure", "n", "mean", "sd", "95 % interval"], rows)
    for cell in cells:
        said = [str(value) for value in _field(lines, cell, "bottleneck")]
        if said:
            most, times = collections.Counter(said).most_common(1)[0]
            limits.append([name_of(cell, axes) + _mark(lines, cell), most,
                           f"{times} of {len(said)}"])
    if limits:
        yield Table(["cell", "bottleneck", "turns"], limits)


# ---- other lines


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def _results(lines: list[Line], kind: str) -> Iterator[Block]:
    """Lines of one kind as a table: the axes of the cell, then the fields."""
    mine = [line for line in lines if line["kind"] == kind]
    if not mine:
        return
    flat = [{**line.get("cell", {}),
             **{name: value for name, value in line.items()
                if name not in ("kind", "cell", "simulated") and _scalar(value)}}
            for line in mine]
    columns = list(dict.fromkeys(name for row in flat for name in row))[:MOST_COLUMNS]
    rows = [[_shown(row.get(name)) for name in columns] for row in flat]
    if any(line.get("simulated") for line in mine):
        yield Notice("Figures of this table are simulated: " + ", ".join(
            sorted({str(line.get("shape", kind)) for line in mine if line.get("simulated")})))
    yield Table(columns, rows)


def _absent(lines: list[Line]) -> Iterator[Block]:
    rows = [[name_of(line.get("cell", {}), list(line.get("cell", {}))), line["reason"]]
            for line in lines if line["kind"] == "absent"]
    if rows:
        yield Text("Not measured:")
        yield Table(["cell", "reason"], rows)


def _notices(lines: list[Line], cells: Sequence[Cell]) -> Iterator[Block]:
    if any(verdicts.is_simulated(lines, cell) for cell in cells):
        yield Notice("Rows that say (simulated) were measured with simulated storage or with a "
                     "consumer of fixed time in the place of a training.")
    disturbed = results.warning(lines)
    if disturbed:
        yield Notice(f"Not alone on the machine: {disturbed}.")
    if lines[-1]["kind"] != "end":
        yield Notice("This run is not complete: continue it with 'penstock-lab resume'.")


def _own(question: str) -> Callable[[list[Line]], list[Block]] | None:
    """The function page() of the verb that asks this question, if it has one."""
    from .. import _cli

    if question not in _cli.VERBS:
        return None
    found: Callable[[list[Line]], list[Block]] | None
    found = getattr(_cli.module(question), "page", None)
    return found


def blocks(lines: list[Line], path: pathlib.Path) -> list[Block]:
    """All of a run. LINES are checked; PATH is the report, for the command that repeats it."""
    head = lines[0]
    cells = {key: cell for key, cell in results.cells(lines).items()
             if results.rates(lines, cell)}
    found: list[Block] = [Heading(f"{head['question']}: {head['name']}"), Text(_about(head))]
    found += _inputs(head)
    found += _notices(lines, list(cells.values()))
    own = _own(head["question"])
    if own:
        found += own(lines)
    elif cells:
        found += _rates(lines, list(cells.values()))
        found += [Text(said) for said in verdicts.verdicts(lines, cells)]
        found += _figures(lines, list(cells.values()))
    for kind in ("result", "shape"):
        found += _results(lines, kind)
    found += _absent(lines)
    found += [Text("Measured by:"), Command(shlex.join(head["command"])), Text("Repeat it:"),
              Command(f"penstock-lab rerun {shlex.quote(str(path.parent))}")]
    return found
