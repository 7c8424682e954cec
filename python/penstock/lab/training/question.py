# SPDX-License-Identifier: Apache-2.0
"""The experiment `train`: one training, repeated with other seeds."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import shlex
import sys
from collections.abc import Callable
from typing import Any

from .. import tables
from ..errors import LabError
from ..experiment import inputs, results
from ..experiment.question import Arm, Cell, Question
from ..experiment.report import Line
from ..experiment.statistics import Summary, summary
from .settings import Training


def say(text: str) -> None:
    """A line on stdout, which also replaces the progress bar."""
    print(("\r\x1b[K" if sys.stdout.isatty() else "") + text, flush=True)


def need_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise LabError("training needs PyTorch: pip install torch") from None
    return torch


def train(training: Training, folder: pathlib.Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Train to the end, from the checkpoint in FOLDER if there is one."""
    from .loop import Trainer

    trainer = Trainer(training, folder, say)
    try:
        return trainer.run()
    finally:
        trainer.close()


class TrainArm(Arm):
    def __init__(self, training: Training, folder: pathlib.Path) -> None:
        self.training, self.folder = training, folder

    def turn(self, number: int) -> dict[str, Any]:
        seed = self.training.seed + number
        training = dataclasses.replace(self.training, seed=seed, rounds=1)
        return {"seed": seed, **train(training, self.folder / f"seed-{seed}", say)}


def _described(pack: str) -> dict[str, Any]:
    if pathlib.Path(pack).is_dir() and not inputs.is_pack(pack):
        raise LabError(f"cannot train on the folder '{pack}': expected a pack. Make one: penstock "
                       f"pack {shlex.quote(pack)} -o NAME.pen")
    return inputs.describe(pack)


class TrainQuestion(Question):
    warm_up = False

    def __init__(self, training: Training, folder: pathlib.Path) -> None:
        need_torch()
        self.training, self.folder = training, folder
        packs = [pack for _, pack in training.parts()]
        self.packs = {pack: _described(pack) for pack in [*packs, training.val]}
        for pack in packs:
            samples = self.packs[pack]["samples"]
            if samples < training.batch_size:
                raise LabError(f"'{pack}' has {samples} samples, fewer than a batch of "
                               f"{training.batch_size}; use a smaller --batch-size")

    def inputs(self) -> list[dict[str, Any]]:
        return list(self.packs.values())

    def versions(self) -> dict[str, str]:
        torch = need_torch()
        return {"torch": str(torch.__version__), "torch_threads": str(torch.get_num_threads())}

    def groups(self) -> list[list[Cell]]:
        return [[{"model": self.training.model}]]

    def open(self, cell: Cell) -> Arm:
        return TrainArm(self.training, self.folder)


def plus_minus(figure: Summary, form: str = ".2f") -> str:
    """Mean and standard deviation."""
    sd = "" if math.isnan(figure.sd) else f" ± {figure.sd:{form}}"
    return f"{figure.mean:{form}}{sd}"


def table(lines: list[Line]) -> str:
    """Accuracy on the validation pack after the last epoch, and where the time went."""
    rows = []
    for cell in results.cells(lines).values():
        turns = results.of_cell(lines, cell, "turn")
        if turns:
            top1, top5 = (summary([turn[k] for turn in turns]) for k in ("top1", "top5"))
            seconds = sum(turn["seconds"] for turn in turns)
            waited = sum(turn["data_seconds"] for turn in turns)
            rate = sum(turn["samples"] for turn in turns) / seconds
            rows.append([str(cell["model"]), str(top1.n), plus_minus(top1), plus_minus(top5),
                         f"{rate:,.0f}", f"{100 * waited / seconds:.1f}"])
    header = ["model", "n", "top-1 %", "top-5 %", "images/s", "time waiting for data %"]
    return tables.markdown(header, rows)
