# SPDX-License-Identifier: Apache-2.0
"""penstock-lab growth: what an image costs as threads, packs, batches and image sides grow."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from .. import tables
from ..experiment import command
from ..experiment.question import Question
from ..experiment.report import Line
from ..growth import figures
from ..growth.question import Growth, Parameters
from ..pages import Block, Table, Text

HELP = """Measures what an image costs as threads, packs, batches and image sides grow. SOURCE is a
folder of images, or a pack. Each turn is one 'penstock doctor' of a pack in the page cache:
RandomResizedCrop 224 and flip, u8; crops of thumbnails have 56 pixels.

Packs are made of the images of SOURCE, over and over again. They stay in the folder of the run, or
in --work. The second command is the complete measurement, which takes 15 GB.

  penstock-lab growth photos/
  penstock-lab growth photos/ --packs 1000,10000,100000 --thumbnails 1000000
  penstock-lab growth photos/ --parts batches --batches 1,16,256 --images 1000
"""
__all__ = ["Parameters"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def run(options: argparse.Namespace) -> int:
    return command.run("growth", options)


def question(chosen: Any, folder: pathlib.Path) -> Question:
    return Growth(chosen, folder)


def table(lines: list[Line]) -> str:
    said = "".join(f"- {tables.plain(line)}\n" for line in figures.aims(lines))
    made = [tables.markdown(*one) for one in figures.tables_of(lines)]
    return "\n".join([*made, *filter(None, [said])])


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    if not figures.cells(lines):
        return []
    return [*(Table(*one) for one in figures.tables_of(lines)), *map(Text, figures.aims(lines)),
            *figures.plots_of(lines)]
