# SPDX-License-Identifier: Apache-2.0
"""penstock-lab sizes: how many bytes a dataset takes in other qualities and sizes."""

from __future__ import annotations

import argparse
import math
import pathlib
import re
from typing import Any

from .. import tables
from ..errors import LabError
from ..experiment import command, parameters, results
from ..experiment.question import Cell, Question
from ..experiment.report import Line
from ..images.sizes import Parameters, Sizes
from ..pages import Block, Picture, Table, Text

HELP = """Shows what a dataset takes in other qualities and sizes: bytes with a 95 % interval, the
ratio to raw pixels, the time of packing, and what is lost (PSNR and SSIM against the resized
original). By default it packs a sample of the images and estimates the rest; --exact packs all.

A JPEG that has the requested quality or less, and is not resized, is kept as it is.

  penstock-lab sizes photos/
  penstock-lab sizes photos/ --exact --encodings jpeg90,webp80 --sides 256,0
"""
__all__ = ["Parameters"]
MOST_SIDES, NEARLY_LOSSLESS = 3, 50  # in the plot; dB
HEADER = ["encoding, longest side", "size", "of raw", "time of packing", "PSNR", "SSIM"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(chosen: Any, folder: pathlib.Path) -> Question:
    return Sizes(chosen, folder)


def run(options: argparse.Namespace) -> int:
    code = command.run("sizes", options)
    if options.write_config:
        return code
    chosen = parameters.from_options(Parameters, "sizes", options)
    name = options.name or parameters.name("sizes", chosen)
    folder = pathlib.Path(options.out) / "sizes" / name
    from ..experiment import report

    try:
        drawn = plot(report.read(folder))
    except LabError as error:
        print(f"no plot: {error}")
        return code
    if drawn is not None:
        (folder / "rate-distortion.svg").write_text(drawn.svg, encoding="utf-8")
        print(f"plot: {folder / 'rate-distortion.svg'}")
    return code


def _mean(lines: list[Line], cell: Cell, field: str) -> float | None:
    found = results.values(lines, cell, field)
    return sum(found) / len(found) if found else None


def _cells(lines: list[Line]) -> list[Cell]:
    return [cell for cell in results.cells(lines).values()
            if results.of_cell(lines, cell, "turn")]


def _size(value: float, low: float | None, high: float | None) -> str:
    unit, name = (1e9, "GB") if value >= 1e10 else (1e6, "MB")
    if low is None or high is None:  # from one image
        return f"{value / unit:,.2f} {name} \u00b1 unknown"
    reach = (high - low) / 2 / value
    return f"{value / unit:,.2f} {name}" + (f" \u00b1 {100 * reach:.1f} %" if reach else "")


def _side(cell: Cell) -> str:
    return str(cell["side"]) if cell["side"] else "original"


def rows(lines: list[Line]) -> list[list[str]]:
    raw = {cell["side"]: _mean(lines, cell, "bytes") for cell in _cells(lines)
           if cell["encoding"] == "raw"}
    made = []
    for cell in _cells(lines):
        turn = results.of_cell(lines, cell, "turn")[-1]
        size, whole = _mean(lines, cell, "bytes") or 0.0, raw.get(cell["side"])
        loss = "-" if "psnr" not in turn else "no loss" if turn["psnr"] is None else (
            f"{turn['psnr']:.1f} dB")
        made.append([
            f"{cell['encoding']}, {_side(cell)}", _size(size, turn["low"], turn["high"]),
            f"{size / whole:.3f}" if whole else "-",
            f"{_mean(lines, cell, 'pack_seconds'):,.1f} s", loss,
            f"{turn['ssim']:.4f}" if "ssim" in turn else "-",
        ])
    return made


def _note(lines: list[Line]) -> str:
    turns = [line for line in lines if line["kind"] == "turn"]
    if all(turn["low"] == turn["high"] is not None for turn in turns):
        return "Sizes are exact."
    return (f"Sizes and times of all images are estimated from {turns[0]['samples']} of them; "
            "\u00b1 is the 95 % interval.")


def table(lines: list[Line]) -> str:
    return tables.markdown(HEADER, rows(lines)) + f"\n{_note(lines)}\n"


def plot(lines: list[Line]) -> Picture | None:
    """PSNR by bytes per image: a series for each codec and side, of at most three sides."""
    from .. import plots

    sides = list(dict.fromkeys(cell["side"] for cell in _cells(lines)))
    if len(sides) > MOST_SIDES:
        sides = [sides[0], sides[len(sides) // 2], sides[-1]]

    images = max(1, int(lines[0]["inputs"][0]["samples"]))
    found: dict[str, list[tuple[float, float, str]]] = {}
    for cell in _cells(lines):
        parts = re.fullmatch(r"(jpeg|webp)(\d+)", cell["encoding"])
        turn = results.of_cell(lines, cell, "turn")[-1]
        if parts and cell["side"] in sides and (turn.get("psnr") or math.inf) < NEARLY_LOSSLESS:
            points = found.setdefault(f"{parts[1]}, {_side(cell)}", [])
            points.append((turn["bytes"] / images / 1e3, turn["psnr"], parts[2]))
    if not found:
        return None
    series = []
    for name, points in found.items():
        points.sort()
        series.append(plots.Series(name, [p[0] for p in points], [p[1] for p in points],
                                   names=[p[2] for p in points]))
    drawn = plots.scatter("Rate and distortion", "kB per image", "PSNR, dB", series,
                          scales=("log", "linear"),
                          note="Against the resized original. Numbers beside points: quality. "
                          f"Encodings of {NEARLY_LOSSLESS} dB or more are not shown.")
    return Picture(drawn.svg(), "PSNR by bytes per image, for each codec and longest side.")


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    if not _cells(lines):
        return []
    picture = plot(lines)
    return [Text(_note(lines)), Table(HEADER, rows(lines)), *([picture] if picture else [])]
