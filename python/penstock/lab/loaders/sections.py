# SPDX-License-Identifier: Apache-2.0
"""A section of a report on clips or on videos: the loaders that were compared in one setting."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from .report import comparison, spread

BASE = "penstock"


class Table(NamedTuple):
    header: list[str]
    rows: list[list[str]]


class Section:
    """The arms of these names; those that have no turns are absent."""

    def __init__(self, lines: list[Line], arms: Mapping[str, Cell]) -> None:
        self.found: dict[str, Line] = {}
        self.absent: dict[str, str] = {}
        for name, cell in arms.items():
            missing = results.of_cell(lines, cell, "absent")
            measured = results.turns_of(lines, cell)
            if missing:
                self.absent[name] = missing[0]["reason"]
            elif measured:
                prepared = results.of_cell(lines, cell, "prepared")[0]
                self.found[name] = {**prepared, "turns": measured}
        self._rates()

    def _rates(self) -> None:
        """Of the rounds that all loaders have: a run may be incomplete."""
        rounds = min((len(one["turns"]) for one in self.found.values()), default=0)
        for one in self.found.values():
            one["turns"] = one["turns"][:rounds]
            one["rates"] = [results.rate_of(turn) for turn in one["turns"]]

    @property
    def base(self) -> str:
        return BASE if BASE in self.found else next(iter(self.found), BASE)

    def speedup(self, name: str) -> str:
        """Of the base, by the medians, with the lowest and the highest of one round."""
        if name == self.base:
            return "-"
        result = comparison(self.found, self.base, name)
        assert result is not None
        return spread(result) + (", no winner" if result["verdict"] == "no winner" else "")

    def absent_rows(self, columns: int) -> list[list[str]]:
        """Rows of a table with so many columns, the first of which has the loader."""
        return [[name, f"absent: {why}", *[""] * (columns - 2)]
                for name, why in self.absent.items()]


def values(found: Iterable[float], digits: int = 2) -> str:
    """The median with the lowest and the highest value."""
    all_of = list(found)
    return (f"{statistics.median(all_of):.{digits}f} "
            f"({min(all_of):.{digits}f}-{max(all_of):.{digits}f})")


def introduction(head: Line, conditions: str) -> str:
    """The first paragraph of a report: the machine, the date and what all figures share."""
    here = head["machine"]
    return (f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, {head['date'][:10]}. "
            f"{conditions}\n")
