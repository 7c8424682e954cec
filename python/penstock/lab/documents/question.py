# SPDX-License-Identifier: Apache-2.0
"""All documents as one experiment: a cell for each of them."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import time
from typing import Any

from ..errors import Absent, LabError
from ..experiment import inputs, parameters, report
from ..experiment.question import Arm, Cell, Question
from .figure import Options

DOCUMENTS = ("gulpio", "aws", "dl2", "dl2_codec", "dl2_accuracy", "concurrent", "ffcv")


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    rounds: int = parameters.option(1, "runs of each document", short="r")
    documents: tuple[str, ...] = parameters.option(
        DOCUMENTS, f"documents to redo: {', '.join(DOCUMENTS)}", positional=True,
        path=False)
    photos: str = parameters.option("", "a folder of photographs", path=True)
    repeats: int = parameters.option(3, "turns of each loader in a document; they alternate",
                                     short="n")
    fashion: str = parameters.option("", "a report of 'penstock-lab fashion' for dl2_accuracy; "
                                     "empty: the newest one in --out", path=True)
    budget: float = parameters.option(90.0, "minutes after which no further document starts")


def module(name: str) -> Any:
    """The module of a document."""
    if name not in DOCUMENTS:
        raise LabError(f"unknown document '{name}'; expected one of {', '.join(DOCUMENTS)}")
    return importlib.import_module(f".{name}", __package__)


class DocumentArm(Arm):
    def __init__(self, name: str, options: Options) -> None:
        self.document, self.options = module(name), options

    def turn(self, number: int) -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        found = self.document.figures(self.options)
        waits = getattr(self.document, "waits", None)
        return {
            "seconds": round(time.perf_counter() - began, 3), "samples": len(found),
            "cpu": round(time.process_time() - cpu, 3),
            "figures": [dataclasses.asdict(figure) for figure in found],
            "waits": waits(self.options) if waits else {},
        }


class Documents(Question):
    warm_up = False

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        for name in chosen.documents:
            module(name)
        if not chosen.photos:
            raise LabError("expected a folder of photographs: penstock-lab seeds --photos DIR")
        if chosen.repeats < 1:
            raise LabError(f"repeats: expected at least 1, found {chosen.repeats}")
        self.chosen, self.folder = chosen, folder
        self.began = time.monotonic() - self.used()

    def used(self) -> float:
        """Seconds that earlier processes used for this run."""
        if not (self.folder / report.NAME).is_file():
            return 0.0
        return sum(float(line.get("wall", 0.0)) for line in report.read(self.folder))

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.chosen.photos)]

    def groups(self) -> list[list[Cell]]:
        return [[{"document": name}] for name in self.chosen.documents]

    def open(self, cell: Cell) -> Arm:
        minutes = (time.monotonic() - self.began) / 60
        if minutes > self.chosen.budget:
            raise Absent(f"the budget of {self.chosen.budget:g} minutes is used")
        options = Options(self.chosen.photos, str(self.folder / "work"), self.chosen.repeats,
                          fashion=self.chosen.fashion)
        return DocumentArm(cell["document"], options)
