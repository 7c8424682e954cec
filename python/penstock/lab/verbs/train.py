# SPDX-License-Identifier: Apache-2.0
"""penstock-lab train: train an image classifier."""

from __future__ import annotations

import argparse
import pathlib

from ..experiment import command
from ..experiment.report import Line
from ..training import question as train
from ..training.settings import Training

HELP = """Trains an image classifier on a pack with PyTorch, and validates it after every epoch.

    penstock-lab train train.pen --val val.pen --epochs 10 --size 64
    penstock-lab train --stages 5:low.pen,5:high.pen --val val.pen

It prints the time of a batch (Time) and the part of it that was spent waiting for data (Data). The
same command continues a training that was killed, with the same result. The weights are in
seed-N/checkpoint.pt of the run's folder.
"""

Parameters = Training


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(parameters: Training, folder: pathlib.Path) -> train.TrainQuestion:
    return train.TrainQuestion(parameters, folder)


def table(lines: list[Line]) -> str:
    return train.table(lines)


def run(options: argparse.Namespace) -> int:
    return command.run("train", options)
