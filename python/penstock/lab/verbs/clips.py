# SPDX-License-Identifier: Apache-2.0
"""penstock-lab clips: loaders of video clips."""

from __future__ import annotations

import argparse
import pathlib

from ..clips import tables
from ..clips.question import Clips, Parameters
from ..experiment import command
from ..experiment.report import Line
from ..pages import Block, Heading, Table, Text

HELP = """Compares loaders of video clips: penstock, JPEG files, GulpIO2, decord2 and torchcodec.

The set resembles Jester: clips of 37 frames of 176x100 pixels, cut out of the videos of a folder at
random times and boxes. Tasks:
  size   what the set takes on the disk: payload, index, slack of the file system
  fetch  batches of [10, 3, 18, 84, 84] in sequential order, from the start of the loader
  train  a shuffled epoch with a simulated training step, and how long that waits for data
Each turn is a process of its own. Its time starts when everything is imported. Loaders that are not
installed are absent: penstock-lab setup dataloader gulpio2 decord torchcodec

  penstock-lab clips --videos videos/
  penstock-lab clips fetch train --storage warm,seeks=6.8ms --loaders penstock,jpeg
"""
table = tables.markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(chosen: Parameters, folder: pathlib.Path) -> Clips:
    return Clips(chosen, folder)


def run(options: argparse.Namespace) -> int:
    return command.run("clips", options)


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    found: list[Block] = [Text(tables.conditions(lines[0]))]
    for section in tables.sections_of(lines):
        found.append(Heading(section.title(), 3))
        found += [Table(one.header, one.rows) for one in tables.tables_of(section)]
    return found
