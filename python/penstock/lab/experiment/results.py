# SPDX-License-Identifier: Apache-2.0
"""Figures of a report, cell by cell."""

from __future__ import annotations

import math

from .. import tables
from . import machine
from .question import Cell
from .report import Line
from .statistics import Summary, summary
from .sweep import key, label


def cells(lines: list[Line]) -> dict[str, Cell]:
    """All cells of a report in their order, by key."""
    return {key(line["cell"]): line["cell"] for line in lines if "cell" in line}


def of_cell(lines: list[Line], cell: Cell, kind: str) -> list[Line]:
    wanted = key(cell)
    return [line for line in lines
            if line["kind"] == kind and "cell" in line and key(line["cell"]) == wanted]


def rate_of(turn: Line) -> float:
    """Samples per second of a turn: its samples by its seconds."""
    return float(turn["samples"]) / max(float(turn["seconds"]), 1e-9)


def turns_of(lines: list[Line], cell: Cell) -> list[Line]:
    """The turns of a cell, in the order of the rounds."""
    return sorted(of_cell(lines, cell, "turn"), key=lambda turn: int(turn["round"]))


def rates(lines: list[Line], cell: Cell) -> list[float]:
    """Samples per second of each turn, in the order of the rounds."""
    return [rate_of(x) for x in turns_of(lines, cell) if "samples" in x and "seconds" in x]


def values(lines: list[Line], cell: Cell, field: str) -> list[float]:
    """One field of the turns, in the order of the rounds.

    "rate" is samples per second, "cpu_per_1000" seconds of processor time for 1,000 samples.
    """
    if field == "rate":
        return rates(lines, cell)
    if field == "cpu_per_1000":
        return [1000.0 * turn["cpu"] / turn["samples"] for turn in turns_of(lines, cell)
                if "cpu" in turn and turn.get("samples")]
    return [float(turn[field]) for turn in turns_of(lines, cell)
            if isinstance(turn.get(field), (int, float))]


def cpu_per_1000(lines: list[Line], cell: Cell) -> float | None:
    """Seconds of processor time for 1,000 samples, over all turns."""
    turns = [turn for turn in of_cell(lines, cell, "turn") if "cpu" in turn]
    samples = sum(turn["samples"] for turn in turns)
    return 1000.0 * sum(turn["cpu"] for turn in turns) / samples if samples else None


def interval(figure: Summary, form: str = ",.0f") -> str:
    if math.isnan(figure.low):
        return "-"
    return f"{figure.low:{form}} to {figure.high:{form}}"


def other_cores(lines: list[Line]) -> float:
    """Cores that other processes used while the turns ran, on average."""
    turns = [line for line in lines if line["kind"] == "turn" and line.get("wall")]
    wall = sum(turn["wall"] for turn in turns)
    return sum(turn.get("other_cpu", 0.0) for turn in turns) / wall if wall else 0.0


def all_warnings(lines: list[Line]) -> list[str]:
    """What may have disturbed the figures of a run: simulated storage that misses its values, and
    other processes on the machine."""
    missed = [
        f"{'simulated ' if line.get('simulated') else ''}{line['shape']}: {line['what']}: "
        f"{line['asked']:g} {line['unit']} requested, "
        f"{line['measured']:.4g} measured, which is more than 5 % off"
        for line in lines if line["kind"] == "shape" and not line["within"]
    ]
    disturbed = warning(lines)
    if disturbed:
        missed.append(f"{disturbed}. Measure again when the machine is idle")
    return missed


def warning(lines: list[Line]) -> str:
    """Why the figures of a run may be disturbed; "" if it was alone on the machine."""
    loads = [lines[0]["machine"].get("load_before", 0.0)]
    loads += [line["load_before"] for line in lines if line["kind"] == "resumed"]
    return machine.not_alone(max(loads), other_cores(lines))


def table(lines: list[Line]) -> str:
    """Mean, sd, n and 95 % interval of samples per second; absent cells with the reason."""
    header = ["cell", "n", "samples/s", "sd", "95 % interval", "first epoch s"]
    rows: list[list[str]] = []
    for cell in cells(lines).values():
        measured, first = rates(lines, cell), of_cell(lines, cell, "first")
        if not measured:
            for absent in of_cell(lines, cell, "absent"):
                rows.append([label(cell), "0", f"absent: {absent['reason']}", "", "", ""])
            continue
        figure = summary(measured)
        rows.append([
            label(cell), str(figure.n), f"{figure.mean:,.1f}",
            "-" if math.isnan(figure.sd) else f"{figure.sd:,.1f}", interval(figure, ",.1f"),
            f"{first[0]['seconds']:.3f}" if first and "seconds" in first[0] else "-",
        ])
    return tables.markdown(header, rows)
