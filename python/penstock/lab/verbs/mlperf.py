# SPDX-License-Identifier: Apache-2.0
"""penstock-lab mlperf: how many accelerators this host feeds."""

from __future__ import annotations

import argparse
import math
import pathlib
from typing import Any

from .. import tables
from ..experiment import command, results
from ..experiment.question import Cell, Question
from ..experiment.report import Line
from ..experiment.statistics import summary
from ..mlperf import workloads
from ..mlperf.question import MlPerf, Parameters
from ..pages import Block, Notice, Picture, Table, figures

HELP = """Measures how many simulated accelerators this host feeds with images, in the manner of
MLPerf Storage. It is not a submission, and its figures are not MLPerf results.

The batch, the step time and the least accelerator utilization (AU) are those of MLPerf Storage:
  resnet50   400 images per 0.224 s (H100), AU of at least 90 %
  retinanet  24 images of 323 kB per 0.04755 s (B200), AU of at least 85 %
Unlike MLPerf Storage, images are decoded and augmented. N accelerators are one accelerator whose
step takes 1 / N of the time, so N can be a fraction. A search finds the largest N at the line.

  penstock-lab mlperf photos/
  penstock-lab mlperf photos.pen --workloads resnet50 --threads 1,2
"""
__all__ = ["Parameters"]
NOTE = ("In the manner of MLPerf Storage, not a submission. The accelerators are simulated: a step "
        "is a pause of fixed time. Images are decoded and augmented, which MLPerf Storage does "
        "not do.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def run(options: argparse.Namespace) -> int:
    return command.run("mlperf", options)


def question(chosen: Any, folder: pathlib.Path) -> Question:
    return MlPerf(chosen, folder)


def _values(lines: list[Line], cell: Cell, field: str) -> list[float]:
    return [float(turn[field]) for turn in results.of_cell(lines, cell, "turn")]


def _name(cell: Cell) -> str:
    threads = f", {cell['threads']} threads" if cell["threads"] else ""
    return f"{workloads.workload(cell['workload']).title}{threads}"


def _row(lines: list[Line], cell: Cell) -> list[str]:
    one = workloads.workload(cell["workload"])
    fed, used = (_values(lines, cell, name) for name in ("accelerators", "cores"))
    per = summary([cores / n for cores, n in zip(used, fed) if n] or [float("nan")])
    found, reached = summary(fed), summary(_values(lines, cell, "utilization"))
    return [f"{_name(cell)} (simulated)", f"{one.rate:,.0f}", str(found.n),
            f"{found.mean:.2f}", figures.number(found.sd), figures.interval(found),
            f"{100 * reached.mean:.1f} (line {100 * one.utilization:.0f})",
            "-" if math.isnan(per.mean) else f"{per.mean:.2f}"]


HEADER = ["workload", "images/s each", "n", "accelerators fed", "sd", "95 % interval", "AU %",
          "cores each"]


def _measured(lines: list[Line]) -> list[Cell]:
    return [cell for cell in results.cells(lines).values()
            if results.of_cell(lines, cell, "turn")]


def table(lines: list[Line]) -> str:
    rows = [_row(lines, cell) for cell in _measured(lines)]
    return tables.markdown(HEADER, rows) + f"\n{NOTE}\n"


def _plot(lines: list[Line], cells: list[Cell]) -> Picture:
    from .. import plots

    series = []
    for cell in cells:
        points = sorted({(round(float(p[0]), 3), 100 * float(p[1]))
                         for turn in results.of_cell(lines, cell, "turn")
                         for p in turn["points"]})
        series.append(plots.Series(_name(cell), [p[0] for p in points], [p[1] for p in points]))
    drawn = plots.scatter("Accelerator utilization (simulated accelerators)", "accelerators",
                          "AU (%)", series, note="All measurements of the searches.")
    return Picture(drawn.svg(), "Accelerator utilization by number of simulated accelerators.")


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    cells = _measured(lines)
    if not cells:
        return []
    images = [[str(line["cell"].get("workload")), str(line.get("images")),
               str(line.get("image_bytes")), str(line.get("page_cache"))]
              for line in lines if line["kind"] == "prepared"]
    return [Notice(NOTE), Table(HEADER, [_row(lines, cell) for cell in cells]),
            _plot(lines, cells),
            Table(["workload", "images", "bytes per image", "page cache"], images)]
