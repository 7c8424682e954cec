# SPDX-License-Identifier: Apache-2.0
"""The experiment: train on every encoding with the same seeds, and compare the accuracy."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from ... import tables
from ...errors import LabError
from ...experiment import inputs, results
from ...experiment.question import Arm, Cell, Question
from ...experiment.report import Line
from ...experiment.statistics import difference, summary
from ..question import need_torch, plus_minus
from ..settings import Training
from . import encodings

PLAIN = "plain"


def _parts(regimen: str) -> list[tuple[str, str]]:
    """Epochs and encoding of each stage of '3:jpeg10,2:raw'."""
    found = []
    for text in regimen.split(","):
        epochs, _, name = text.partition(":")
        if not epochs.isdigit() or int(epochs) < 1:
            raise LabError(f"regimen: expected EPOCHS:ENCODING,EPOCHS:ENCODING, found '{text}'")
        encodings.options(name)
        found.append((epochs, name))
    return found


class EncodingArm(Arm):
    """Training on one encoding, or on several in stages.

    val  test images of the last encoding; those of training.val have the first of all cells
    """

    def __init__(self, training: Training, folder: pathlib.Path, val: str, made: dict[str, Any]
                 ) -> None:
        self.training, self.folder, self.val, self.made = training, folder, val, made

    def prepared(self) -> dict[str, Any]:
        return self.made

    def turn(self, number: int) -> dict[str, Any]:
        from ..data import validation_loader
        from ..loop import Trainer

        seed = self.training.seed + number
        training = dataclasses.replace(self.training, seed=seed)
        trainer = Trainer(training, self.folder / f"seed-{seed}", lambda _: None)
        stored = validation_loader(dataclasses.replace(training, val=self.val))
        try:
            result = trainer.run()
            same = trainer.validate(stored)
        finally:
            stored.close()
            trainer.close()
        return {"seed": seed, **result, "top1_as_stored": same["top1"]}


class PlainArm(Arm):
    """The plain loop, in the order of the raw pack."""

    def __init__(self, training: Training, arrays: dict[str, tuple[Any, Any]]) -> None:
        self.training, self.arrays = training, arrays

    def prepared(self) -> dict[str, Any]:
        from .plain import compare

        return dict(compare(self.training, *self.arrays["train"]))

    def turn(self, number: int) -> dict[str, Any]:
        from .plain import train

        seed = self.training.seed + number
        return {"seed": seed, **train(dataclasses.replace(self.training, seed=seed), self.arrays)}


class AccuracyQuestion(Question):
    """training  what all cells share; its packs are replaced
    names     encodings; the first one is that of the test images
    arrays    images and labels of both splits, for the plain loop; None: no plain loop
    """

    warm_up = False

    def __init__(
        self, training: Training, source: encodings.Source, names: Sequence[str], regimen: str,
        folder: pathlib.Path, arrays: dict[str, tuple[Any, Any]] | None = None,
    ) -> None:
        need_torch()
        if not names:
            raise LabError("encodings: expected at least one, such as raw")
        for name in names:
            encodings.options(name)
        if arrays and names[0] != "raw":
            raise LabError("plain: expected raw as the first of --encodings, because arrays have "
                           "raw pixels; or pass --no-plain")
        self.training, self.source, self.names, self.regimen = training, source, names, regimen
        self.folder, self.arrays = folder, arrays
        self.stages = _parts(regimen) if regimen else []
        self.places = dict.fromkeys([training.train, training.val])

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(place) for place in self.places]

    def versions(self) -> dict[str, str]:
        torch = need_torch()
        return {"torch": str(torch.__version__), "torch_threads": str(torch.get_num_threads())}

    def groups(self) -> list[list[Cell]]:
        cells = [*self.names, *([PLAIN] if self.arrays else []), *filter(None, [self.regimen])]
        return [[{"data": name} for name in cells]]

    def pack(self, split: str, name: str) -> tuple[str, float]:
        return encodings.make(self.source, split, name, self.folder / "packs")

    def open(self, cell: Cell) -> Arm:
        name = cell["data"]
        stages = self.stages if name == self.regimen else [(str(self.training.epochs), name)]
        if name == PLAIN:
            stages = [(str(self.training.epochs), "raw")]
        packs = [(epochs, *self.pack("train", part)) for epochs, part in stages]
        val, _ = self.pack("test", self.names[0])
        if name == PLAIN and self.arrays is not None:
            training = dataclasses.replace(self.training, train=packs[0][1], val=val)
            return PlainArm(training, self.arrays)
        joined = ",".join(f"{epochs}:{path}" for epochs, path, _ in packs)
        training = dataclasses.replace(self.training, train="", val=val, stages=joined)
        made = {"pack_seconds": sum(seconds for *_, seconds in packs),
                "bytes": sum(encodings.size(pathlib.Path(path)) for _, path, _ in packs)}
        place = self.folder / "trainings" / name.replace(":", "-").replace(",", "_")
        return EncodingArm(training, place, self.pack("test", stages[-1][1])[0], made)


def _against(top1: list[float], first: list[float]) -> str:
    """Whether the mean differs from that of the first encoding by more than the noise."""
    if top1 == first:
        return "the same"
    if min(len(top1), len(first)) < 2:
        return "-"
    found = difference(top1, first)
    if not found.larger_than_noise:
        return "within noise"
    return "higher" if found.ratio > 1 else "lower"


def _row(lines: list[Line], cell: Cell, first: Cell) -> list[str]:
    made = results.of_cell(lines, cell, "prepared")[0]
    top1, stored = (results.values(lines, cell, k) for k in ("top1", "top1_as_stored"))
    return [
        str(cell["data"]), str(len(top1)),
        f"{made['bytes'] / 1e6:,.1f}" if "bytes" in made else "-",
        plus_minus(summary(top1)), plus_minus(summary(stored)) if stored else "-",
        "-" if cell == first else _against(top1, results.values(lines, first, "top1")),
    ]


def measured(lines: list[Line]) -> list[Cell]:
    return [cell for cell in results.cells(lines).values()
            if results.of_cell(lines, cell, "turn")]


def rows(lines: list[Line]) -> list[list[str]]:
    """The header, and the accuracy of each cell; whether it differs from the first one by more than
    the noise."""
    cells = measured(lines)
    header = ["trained on", "n", "MB", "top-1 %", "top-1 %, test images as trained",
              f"against {cells[0]['data']}" if cells else ""]
    return [header, *(_row(lines, cell, cells[0]) for cell in cells)]


def notes(lines: list[Line]) -> list[str]:
    return [f"{made['equal_batches']} of {made['batches']} batches of the raw pack equal those of "
            "the plain loop, bit for bit."
            for made in results.of_cell(lines, {"data": PLAIN}, "prepared")]


def table(lines: list[Line]) -> str:
    header, *found = rows(lines)
    return tables.markdown(header, found) + "".join(f"\n{note}\n" for note in notes(lines))
