# SPDX-License-Identifier: Apache-2.0
"""penstock-lab videos: loaders of clips from kept videos."""

from __future__ import annotations

import argparse
import pathlib

from ..experiment import command
from ..experiment.report import Line
from ..pages import Block, Table, Text
from ..videos import tables
from ..videos.question import Parameters, Videos

HELP = """Compares loaders of short clips from videos: penstock, torchcodec and decord2.

The videos of a folder are encoded as H.264 with a key frame every GOP frames: each by itself
(short), and all of them repeated until they fill a long video. A turn is an epoch of clips at
random places. Every loader returns the same frames, cropped and resized in the same way, which is
checked once against ffmpeg and Pillow. Loaders that are not installed are absent:
penstock-lab setup torchcodec decord

--tasks size compares sizes instead: of video files, packs that keep them, and packs of frames; for
the videos as they are, and for the encoded ones.

  penstock-lab videos videos/
  penstock-lab videos videos/ --gop 12 --lengths long --loaders penstock --storage warm,store=110ms
  penstock-lab videos videos/ --tasks size --lengths short
"""
table = tables.markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(chosen: Parameters, folder: pathlib.Path) -> Videos:
    return Videos(chosen, folder)


def run(options: argparse.Namespace) -> int:
    return command.run("videos", options)


def page(lines: list[Line]) -> list[Block]:
    """What 'penstock-lab report' shows of such a run."""
    found: list[Block] = [Text(tables.conditions(lines[0]))]
    found += [Table(one.header, one.rows) for one in tables.tables_of(lines)]
    return found
