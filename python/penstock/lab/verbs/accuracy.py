# SPDX-License-Identifier: Apache-2.0
"""penstock-lab accuracy: accuracy against image quality and size on a folder of images."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from typing import ClassVar

from ..errors import LabError
from ..experiment import command
from ..experiment.parameters import option
from ..experiment.report import Line
from ..pages import Block
from ..training.accuracy import page as accuracy_page
from ..training.accuracy import question as accuracy
from ..training.accuracy.folders import Folders
from ..training.settings import Training

HELP = """Packs a folder of images with several encodings, trains on each with the same seeds, and
compares the accuracy. TRAIN and --val have a directory of images for each class.

    penstock-lab accuracy photos/train --val photos/val --encodings raw@256,jpeg90@256,jpeg50@256
    penstock-lab accuracy photos/train --val photos/val --regimen 5:jpeg20@128,5:raw@256

All cells are tested on the images of --val in the first encoding, and also on those of their own
encoding. The same command continues a run that was killed.
"""


@dataclasses.dataclass(frozen=True)
class Parameters(Training):
    EXAMPLE: ClassVar[str] = "penstock-lab accuracy photos/train --val photos/val"

    train: str = option("", "folder of the training images", positional=True)
    val: str = option("", "folder of the validation images", path=True)
    encodings: tuple[str, ...] = option(
        ("raw@256", "jpeg90@256", "jpeg50@256", "jpeg20@256"),
        "raw, jpegQ or webpQ, where Q is the quality; @N: at most N pixels a side")
    regimen: str = option("", "EPOCHS:ENCODING,EPOCHS:ENCODING: also a training in stages")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(parameters: Parameters, folder: pathlib.Path) -> accuracy.AccuracyQuestion:
    if parameters.stages:
        raise LabError("stages: these are packs; use --regimen EPOCHS:ENCODING,EPOCHS:ENCODING")
    names = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(Training)}
    return accuracy.AccuracyQuestion(
        Training(**names), Folders(parameters.train, parameters.val), parameters.encodings,
        parameters.regimen, folder)


def table(lines: list[Line]) -> str:
    return accuracy.table(lines)


def page(lines: list[Line]) -> list[Block]:
    return accuracy_page.page(lines)


def run(options: argparse.Namespace) -> int:
    return command.run("accuracy", options)
