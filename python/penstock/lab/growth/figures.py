# SPDX-License-Identifier: Apache-2.0
"""Tables, aims and plots of a report of growth."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..experiment.statistics import difference, summary
from ..pages import Picture
from ..pages.figures import interval, number
from .question import PARTS

RATES = ["", "n", "images/s", "sd", "95 % interval", "bottleneck"]
COSTS = ["", "µs per image", "CPU µs per image", "first batch, ms", "p99 wait, ms", "loader MB"]
AXES = {"threads": "threads", "packs": "images of the pack", "thumbnails": "thumbnails of the pack",
        "batches": "images per batch", "sides": "image width, pixels"}


def cells(lines: list[Line]) -> list[Cell]:
    """The cells that were measured."""
    return [cell for cell in results.cells(lines).values()
            if cell.get("part") in PARTS and isinstance(cell.get("value"), int)
            and min(results.rates(lines, cell), default=0.0) > 0]


def name_of(cell: Cell) -> str:
    part, value = cell["part"], f"{cell['value']:,}"
    if part in ("batches", "sides"):
        return f"batch of {value}" if part == "batches" else f"{value} pixels wide"
    noun = {"threads": "thread", "packs": "image", "thumbnails": "thumbnail"}[part]
    return f"{value} {noun}{'' if value == '1' else 's'}"


def _mean(lines: list[Line], cell: Cell, field: str) -> float:
    found = results.values(lines, cell, field)
    return math.fsum(found) / len(found) if found else math.nan


def rate_row(lines: list[Line], cell: Cell) -> list[str]:
    rate = summary(results.rates(lines, cell))
    bottlenecks = [str(turn.get("bottleneck", "-")) for turn in results.turns_of(lines, cell)]
    return [
        name_of(cell), str(rate.n), number(rate.mean), number(rate.sd), interval(rate),
        " or ".join(dict.fromkeys(bottlenecks)),
    ]


def cost_row(lines: list[Line], cell: Cell) -> list[str]:
    return [
        name_of(cell), number(1e6 / summary(results.rates(lines, cell)).mean),
        number(1000 * _mean(lines, cell, "cpu_per_1000")),
        number(1000 * _mean(lines, cell, "first_batch_seconds")),
        number(_mean(lines, cell, "p99_ms")), number(_mean(lines, cell, "loader_mb")),
    ]


def tables_of(lines: list[Line]) -> list[tuple[list[str], list[list[str]]]]:
    """(header, rows) of the rates, and of what an image costs."""
    found = cells(lines)
    return [(RATES, [rate_row(lines, cell) for cell in found]),
            (COSTS, [cost_row(lines, cell) for cell in found])]


def _ratio(lines: list[Line], of: Cell, to: Cell, aim: float) -> str:
    found = difference(results.rates(lines, of), results.rates(lines, to))
    text, verdict = "", "reached" if found.ratio >= aim else "not reached"
    if not math.isnan(found.low):
        text = f" (95 % interval {found.low:.3f} to {found.high:.3f})"
        if found.low < aim <= found.high:
            verdict = "which is in the interval"
    return (f"{name_of(of)} against {name_of(to)}: {found.ratio:.3f} times the rate{text}; aim: at "
            f"least {aim:g}, {verdict}.")


def aims(lines: list[Line]) -> Iterator[str]:
    """What the figures are expected to be on an idle machine with at least two cores."""
    found: dict[str, list[Cell]] = {part: [] for part in PARTS}
    for cell in sorted(cells(lines), key=lambda cell: int(cell["value"])):
        found[cell["part"]].append(cell)
    threads = {cell["value"]: cell for cell in found["threads"]}
    if 1 in threads and 2 in threads:
        yield _ratio(lines, threads[2], threads[1], 1.9)
    if len(found["packs"]) > 1:
        yield _ratio(lines, found["packs"][-1], found["packs"][0], 0.95)
    for cell in found["thumbnails"][-1:]:
        first = _mean(lines, cell, "first_batch_seconds")
        yield (f"First batch of {name_of(cell)}: {first:.3f} s after opening the pack; aim: at "
               f"most 0.3 s, {'reached' if first <= 0.3 else 'not reached'}.")


def plots_of(lines: list[Line]) -> Iterator[Picture]:
    """Images per second by each part that has several values."""
    from .. import plots

    for part in PARTS:
        mine = sorted((cell for cell in cells(lines) if cell["part"] == part),
                      key=lambda cell: int(cell["value"]))
        if len(mine) < 2:
            continue
        rates = [summary(results.rates(lines, cell)) for cell in mine]
        known = all(rate.n > 1 for rate in rates)
        series = plots.Series(
            part, [float(cell["value"]) for cell in mine], [rate.mean for rate in rates],
            [rate.low for rate in rates] if known else (),
            [rate.high for rate in rates] if known else ())
        note = "Mean of the turns" + (", and its 95 % interval." if known else ".")
        what = AXES[part].partition(",")[0]
        drawn = plots.lines(f"Loading rate by {what}", AXES[part], "images/s", [series],
                            note=note, scales=("log", "linear"))
        yield Picture(drawn.svg(), f"Images per second by {what}.")
