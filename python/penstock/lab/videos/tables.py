# SPDX-License-Identifier: Apache-2.0
"""Tables of a report of `penstock-lab videos`."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from .. import tables
from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..loaders.report import comparison, spread, wanted_rows
from .question import arm_name, parse_aim

BASE = "penstock"


class Table(NamedTuple):
    header: list[str]
    rows: list[list[str]]


class Section:
    """The loaders of one length and GOP; those that have no turns are absent."""

    def __init__(self, lines: list[Line], length: str, gop: int) -> None:
        self.head, self.length, self.gop = lines[0], length, gop
        self.found: dict[str, Line] = {}
        self.absent: dict[str, str] = {}
        for cell in results.cells(lines).values():
            if (cell["length"], cell["gop"]) == (length, gop):
                self._add(lines, cell)
        rounds = min((len(one["turns"]) for one in self.found.values()), default=0)
        for one in self.found.values():  # a run may be incomplete
            one["turns"] = one["turns"][:rounds]
            one["rates"] = [results.rate_of(turn) for turn in one["turns"]]

    def _add(self, lines: list[Line], cell: Cell) -> None:
        name = arm_name(cell["loader"], cell["storage"])
        missing = results.of_cell(lines, cell, "absent")
        measured = results.turns_of(lines, cell)
        if missing:
            self.absent[name] = missing[0]["reason"]
        elif measured:
            prepared = results.of_cell(lines, cell, "prepared")[0]
            where = "" if cell["storage"] == "warm" else f", simulated {cell['storage']}"
            self.found[name] = {**prepared, "title": prepared["title"] + where, "turns": measured}

    @property
    def base(self) -> str:
        return BASE if BASE in self.found else next(iter(self.found), BASE)

    def title(self) -> str:
        return f"{self.length}, GOP {self.gop}"


def sections(lines: list[Line]) -> list[Section]:
    """In the order of the report."""
    pairs = dict.fromkeys((line["cell"]["length"], line["cell"]["gop"])
                          for line in lines if "cell" in line)
    return [Section(lines, *pair) for pair in pairs]


def speedup(section: Section, name: str) -> str:
    """Of the base, by the medians, with the lowest and the highest of one round."""
    if name == section.base:
        return "-"
    result = comparison(section.found, section.base, name)
    assert result is not None
    return spread(result) + (", no winner" if result["verdict"] == "no winner" else "")


def median(figure: Line, name: str) -> float:
    """For one clip."""
    return float(statistics.median(turn[name] / turn["samples"] for turn in figure["turns"]))


def rate(figure: Line) -> str:
    rates = figure["rates"]
    return f"{statistics.median(rates):.1f} ({min(rates):.1f}-{max(rates):.1f})"


def speed_table(lines: list[Line]) -> Table:
    rows = []
    for section in sections(lines):
        for name, figure in section.found.items():
            rows.append([section.title(), figure["title"], rate(figure), speedup(section, name),
                         f"{1000 * median(figure, 'cpu'):.1f}"])
        rows += [[section.title(), name, f"absent: {why}", "", ""]
                 for name, why in section.absent.items()]
    return Table(["videos", "loader", "clips/s (min-max)", "speedup of penstock (min-max)",
                  "CPU ms per clip"], rows)


def bytes_table(lines: list[Line]) -> Table:
    rows = []
    for section in sections(lines):
        for figure in section.found.values():
            off = figure["check"]
            rows.append([section.title(), figure["title"], f"{median(figure, 'bytes') / 1e3:,.0f}",
                         f"{figure['disk'] / 1e6:.1f}", f"{off['mean']:.2f} ({off['max']})"])
    return Table(["videos", "loader", "kB read per clip", "MB stored", "pixel error, mean (max)"],
                 rows)


def aim_table(lines: list[Line]) -> Table | None:
    rows: list[list[str]] = []
    for section in sections(lines):
        aims = [parse_aim(text) for text in lines[0]["parameters"]["aims"]]
        wanted = [(aim.of, aim.against, aim.ratio) for aim in aims
                  if aim.gop in (0, section.gop)]
        rows += [[section.title(), *row] for row in wanted_rows(wanted, section.found)[1:]]
    return Table(["videos", "of", "against", "at least", "ratio (rounds)", ""], rows) if rows \
        else None


def tables_of(lines: list[Line]) -> list[Table]:
    aims = aim_table(lines)
    return [speed_table(lines), bytes_table(lines), *([aims] if aims else [])]


def conditions(head: Line) -> str:
    """What all figures have in common."""
    chosen = head["parameters"]
    source = "the videos" if chosen["videos"] else "ffmpeg's test pictures"
    return (f"Clips of {chosen['frames']} frames, stride {chosen['stride']}, at random places of "
            f"H.264 videos of {chosen['width']}x{chosen['height']}, encoded from {source}; the "
            f"long one has {chosen['seconds']} seconds. The center {chosen['crop']}x"
            f"{chosen['crop']} of each frame is resized to {chosen['size']}x{chosen['size']}. "
            f"{chosen['threads']} threads decode; other loaders have {chosen['waiting']} on a "
            f"store. {chosen['rounds']} interleaved rounds of {chosen['clips']} clips, medians.")


def versions(lines: list[Line]) -> str:
    found = {}
    for section in sections(lines):
        for figure in section.found.values():
            found.update(figure.get("versions", {}))
    return ", ".join(f"{name} {value}" for name, value in sorted(found.items())) + "\n"


def markdown(lines: list[Line]) -> str:
    """All tables of a report."""
    here = lines[0]["machine"]
    parts = [f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, "
             f"{lines[0]['date'][:10]}. {conditions(lines[0])}\n"]
    parts += [tables.markdown(table.header, table.rows) for table in tables_of(lines)]
    return "\n".join([*parts, versions(lines)])
