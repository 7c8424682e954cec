# SPDX-License-Identifier: Apache-2.0
"""penstock-lab bottlenecks: is the bottleneck named rightly where it is known?"""

from __future__ import annotations

import argparse
import pathlib

from ..experiment import command
from ..experiment.report import Line
from ..loaders import bottlenecks
from ..loaders.bottlenecks import Bottlenecks, Parameters
from ..pages import Block, Table

HELP = """Measures loaders where the bottleneck is known, because it is simulated: a slow disk, one
decoding thread, a slow training step, a remote store, little memory, slow seeks. The table has the
bottleneck that 'penstock-lab load' names in these cells, and whether it is right.

penstock names its own bottleneck. For other loaders, a name after '/proc:' is what Linux shows of
their processes.

  penstock-lab bottlenecks photos
  penstock-lab bottlenecks photos --cases slow-disk,store --rounds 7
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(chosen: Parameters, folder: pathlib.Path) -> Bottlenecks:
    return Bottlenecks(chosen, folder)


def run(options: argparse.Namespace) -> int:
    return command.run("bottlenecks", options)


def page(lines: list[Line]) -> list[Block]:
    header, *rows = bottlenecks.rows(lines)
    return [Table(header, rows)]


table = bottlenecks.table
