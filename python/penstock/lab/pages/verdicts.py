# SPDX-License-Identifier: Apache-2.0
"""Which cell of a comparison is the fastest, where the difference is larger than the noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .. import shapes
from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..experiment.statistics import difference
from ..experiment.sweep import key


def is_simulated(lines: Sequence[Line], cell: Cell) -> bool:
    """A shaped storage, or a consumer of fixed time instead of a training."""
    storage = str(cell.get("storage", cell.get("shape", "")))
    if shapes.is_simulated(storage) or cell.get("simulated"):
        return True
    wanted = key(cell)
    mine = (line for line in lines if "cell" in line and key(line["cell"]) == wanted)
    return any(line.get("simulated") or line.get("consumer_ms") for line in mine)


def axes(cells: Iterable[Cell]) -> list[str]:
    """Names of all axes, in their order."""
    return list(dict.fromkeys(axis for cell in cells for axis in cell))


def compared(cells: Sequence[Cell]) -> str:
    """The axis whose values are compared: the loader, or the first one with several values."""
    several = [axis for axis in axes(cells) if len({str(cell.get(axis)) for cell in cells}) > 1]
    return "loader" if "loader" in several else several[0] if several else ""


def groups(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells that differ in the compared axis alone, by what they share."""
    axis = compared(cells)
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        shared = ", ".join(f"{name} {value}" for name, value in cell.items() if name != axis)
        found.setdefault(shared, []).append(cell)
    return found


class Arm(NamedTuple):
    name: str
    rates: list[float]

    @property
    def mean(self) -> float:
        return math.fsum(self.rates) / len(self.rates)


def verdict(arms: Sequence[Arm]) -> str:
    """One sentence about the fastest of several arms."""
    ranked = sorted((arm for arm in arms if arm.rates and min(arm.rates) > 0),
                    key=lambda arm: -arm.mean)
    if len(ranked) < 2:
        return ""
    first, second = ranked[:2]
    found = difference(first.rates, second.rates)
    if math.isnan(found.low):
        return (f"No verdict on {first.name} and {second.name}: one turn is not enough for an "
                "interval.")
    if not found.larger_than_noise:
        return (f"No winner: the difference between {first.name} and {second.name} is within the "
                f"noise (ratio {found.ratio:.2f}, 95 % interval {found.low:.2f} to "
                f"{found.high:.2f}).")
    return (f"{first.name} is the fastest: {found.ratio:.2f} times the rate of {second.name} "
            f"(95 % interval {found.low:.2f} to {found.high:.2f}).")


def verdicts(lines: list[Line], cells: Mapping[str, Cell]) -> list[str]:
    """A sentence for each group of cells that are compared."""
    axis, found = compared(list(cells.values())), []
    for shared, group in groups(list(cells.values())).items():
        said = verdict([Arm(str(cell.get(axis)), results.rates(lines, cell)) for cell in group])
        if said:
            marks = " (simulated)" if any(is_simulated(lines, cell) for cell in group) else ""
            found.append((f"{shared}{marks}: " if shared or marks else "") + said)
    return found
