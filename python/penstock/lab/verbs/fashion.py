# SPDX-License-Identifier: Apache-2.0
"""penstock-lab fashion: accuracy against image quality on Fashion-MNIST."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib

from ..experiment import command
from ..experiment.parameters import Base, option
from ..experiment.report import Line
from ..pages import Block
from ..training.accuracy import idx
from ..training.accuracy import page as accuracy_page
from ..training.accuracy import question as accuracy
from ..training.settings import MODELS, Training

HELP = """Trains a small network on Fashion-MNIST, stored with several encodings, and compares the
accuracy: raw pixels, JPEG and WebP of several qualities, and a regimen of two stages.

    apt-get install dataset-fashion-mnist
    penstock-lab fashion

The cell 'plain' is a PyTorch loop over arrays in memory, with the same seeds and in the same order.
All cells are tested on test images of the first encoding, and also on those of their own. Lossy
WebP stores colors, so its gray images become YUV and are converted back. The same command
continues a run that was killed.
"""


@dataclasses.dataclass(frozen=True)
class Parameters(Base):
    rounds: int = option(5, "trainings of each cell, with the seeds SEED, SEED + 1, ...", short="r")
    data: str = option(idx.FOLDER, "folder of the four IDX files", path=True)
    encodings: tuple[str, ...] = option(
        ("raw", "jpeg90", "jpeg50", "jpeg20", "jpeg10", "webp80", "webp50"),
        "raw, jpegQ or webpQ; Q is the quality")
    regimen: str = option("3:jpeg10,2:raw", "EPOCHS:ENCODING,EPOCHS:ENCODING: a training in "
                          "stages; empty: none")
    plain: bool = option(True, "also train with a plain PyTorch loop")
    epochs: int = option(5, "epochs", short="e")
    model: str = option("small", "network", choices=MODELS)
    batch_size: int = option(128, "samples per batch", short="b")
    lr: float = option(0.1, "learning rate, which falls to 0 along a cosine")
    seed: int = option(0, "seed of the first training")
    threads: int = option(0, "decoding threads; 0: one per core", short="t")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(parameters: Parameters, folder: pathlib.Path) -> accuracy.AccuracyQuestion:
    source = idx.Fashion(parameters.data)
    training = Training(
        train=parameters.data, val=parameters.data, epochs=parameters.epochs, size=28, gray=True,
        model=parameters.model, batch_size=parameters.batch_size, lr=parameters.lr, augment="none",
        channels_last=True, device="cpu", threads=parameters.threads, seed=parameters.seed,
    )
    return accuracy.AccuracyQuestion(
        training, source, parameters.encodings, parameters.regimen, folder,
        source.arrays if parameters.plain else None)


def table(lines: list[Line]) -> str:
    return accuracy.table(lines)


def page(lines: list[Line]) -> list[Block]:
    return accuracy_page.page(lines)


def run(options: argparse.Namespace) -> int:
    return command.run("fashion", options)
