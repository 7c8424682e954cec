# SPDX-License-Identifier: Apache-2.0
"""What a page shows of an experiment about accuracy: the table, and accuracy against bytes."""

from __future__ import annotations

import math
import re

from ...experiment import results
from ...experiment.question import Cell
from ...experiment.report import Line
from ...experiment.statistics import summary
from ...pages import Block, Picture, Table, Text
from . import question

NOTE = "Points: mean of the trainings. Lines: 95 % interval of the mean."


def _point(lines: list[Line], cell: Cell) -> tuple[str, float, float, float, float] | None:
    """Name, MB, mean top-1 and its interval; None if there are no packs of its own."""
    made = results.of_cell(lines, cell, "prepared")[0]
    top1 = summary(results.values(lines, cell, "top1"))
    if "bytes" not in made or not top1.n:
        return None
    low, high = (top1.mean if math.isnan(end) else end for end in (top1.low, top1.high))
    return str(cell["data"]), made["bytes"] / 1e6, top1.mean, low, high


def _group(name: str) -> str:
    """Encodings that differ only by their quality are one series: jpeg90@24 is of jpeg@24."""
    return "in stages" if ":" in name else re.sub(r"^([a-z]+)\d+", r"\1", name)


def plot(lines: list[Line]) -> Picture | None:
    """Accuracy against the size of the training packs."""
    from ... import plots

    found = filter(None, [_point(lines, cell) for cell in question.measured(lines)])
    groups: dict[str, list[tuple[str, float, float, float, float]]] = {}
    for point in found:
        groups.setdefault(_group(point[0]), []).append(point)
    if not groups:
        return None
    series = [plots.Series(name, [p[1] for p in points], [p[2] for p in points],
                           [p[3] for p in points], [p[4] for p in points], [p[0] for p in points])
              for name, points in groups.items()]
    drawn = plots.scatter("Accuracy and bytes", "size of the training packs, MB", "top-1, %",
                          series, note=NOTE)
    return Picture(drawn.svg(), "Top-1 accuracy against the size of the training packs.")


def page(lines: list[Line]) -> list[Block]:
    header, *rows = question.rows(lines)
    drawn = plot(lines)
    return [Table(header, rows), *map(Text, question.notes(lines)), *([drawn] if drawn else [])]
