# SPDX-License-Identifier: Apache-2.0
"""penstock-lab analyse: what the images of a dataset are like."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import time
from typing import Any

from .. import program
from ..errors import LabError
from ..experiment import command, inputs, parameters, results
from ..experiment.question import Arm, Cell, Question
from ..experiment.report import Line
from ..images import analysis
from ..pages import Block, Table, Text

HELP = """Measures the images of a folder or a pack: JPEG quality, sampling, sizes, bytes per pixel,
and the mean and standard deviation of each channel.

DIR gets report.jsonl, summary.md, summary.json, images.csv with a row for each image, histograms as
SVG files, and images.parquet if pyarrow is installed. The figures are those of 'penstock info
--analyse'.

  penstock-lab analyse photos/ --out photos-analysis
"""


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    rounds: int = parameters.option(1, "how often the images are measured", short="r")
    source: str = parameters.option("", "a folder of images, or a pack", positional=True)
    threads: int = parameters.option(0, "decoding threads; 0: one per core")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parameters.add_arguments(parser, Parameters)
    parser.add_argument("--out", metavar="DIR", required=True, help="the directory to write to")
    parser.set_defaults(config=None)


def run(options: argparse.Namespace) -> int:
    chosen = parameters.from_options(Parameters, "analyse", options)
    return command.perform("analyse", chosen, pathlib.Path(options.out), options.command)


def _draw(rows: list[dict[str, object]], folder: pathlib.Path) -> str:
    """Write the histograms; returns their part of the page."""
    from .. import plots

    made = ""
    for column, title, axis in analysis.HISTOGRAMS:
        values = analysis.values(rows, column)
        if values:
            plots.histogram(title, axis, {"images": values}).save(folder / f"{column}.svg")
            made += f"\n![{title}]({column}.svg)\n"
    return made


def _write(summary: dict[str, Any], folder: pathlib.Path) -> None:
    """All files but the report and the CSV file."""
    rows = analysis.rows(folder / "images.csv")
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    page = analysis.markdown(summary)
    if not analysis.write_parquet(rows, folder / "images.parquet"):
        print("images.parquet is not written: pyarrow is not installed", file=sys.stderr)
    try:
        page += _draw(rows, folder)
    except LabError as error:
        print(f"no histograms: {error}", file=sys.stderr)
    (folder / "summary.md").write_text(page, encoding="utf-8", errors="replace")


class _Images(Arm):
    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        self.chosen, self.folder = chosen, folder

    def turn(self, number: int) -> dict[str, Any]:
        more = ["--threads", str(self.chosen.threads)] if self.chosen.threads else []
        began, used = time.monotonic(), program.child_seconds()
        summary = analysis.measure(self.chosen.source, self.folder / "images.csv", *more)
        seconds, cpu = time.monotonic() - began, program.child_seconds() - used
        _write(summary, self.folder)
        return {"seconds": seconds, "samples": summary["images"], "cpu": cpu, "summary": summary}


class Analyse(Question):
    """One cell: all images."""

    warm_up = False

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        if not inputs.is_pack(chosen.source) and not pathlib.Path(chosen.source).is_dir():
            raise LabError(f"cannot read '{chosen.source}': expected a folder of images or a pack")
        self.parameters, self.folder = chosen, folder

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.parameters.source)]

    def groups(self) -> list[list[Cell]]:
        return [[{"images": "all"}]]

    def open(self, cell: Cell) -> Arm:
        return _Images(self.parameters, self.folder)


def question(chosen: Any, folder: pathlib.Path) -> Question:
    return Analyse(chosen, folder)


def _summary(lines: list[Line]) -> dict[str, Any] | None:
    turns = results.of_cell(lines, {"images": "all"}, "turn")
    return turns[-1]["summary"] if turns else None


def table(lines: list[Line]) -> str:
    summary = _summary(lines)
    return analysis.markdown(summary) if summary else ""


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    summary = _summary(lines)
    return [Text(part) if isinstance(part, str) else Table(*part)
            for part in (analysis.parts(summary) if summary else [])]
