# SPDX-License-Identifier: Apache-2.0
"""Cases whose bottleneck is known, because it is simulated: is it named rightly?"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, NamedTuple

from .. import tables
from ..errors import LabError
from ..experiment import inputs, parameters, results
from ..experiment.parameters import option
from ..experiment.question import Arm, Cell, Question
from ..experiment.report import Line
from ..home import home
from . import figures, question, scenario
from .sets import Set


class Case(NamedTuple):
    """expected  the part that limits every loader
    images    how many are loaded
    memory    of the loader, if it has such an option; else its default
    first     the first epoch counts, because the loader has the data in memory then
    """

    expected: str
    storage: str
    format: str = "asis"
    side: int = 0
    threads: int = 2
    consumer: float = 0.0  # ms
    images: int = 200
    memory: str = ""
    first: bool = False


CASES = {
    "slow-disk": Case("disk", "disk=4MB/s"),
    "slow-disk-raw": Case("disk", "disk=20MB/s", "raw", 512),
    "decoding": Case("processor", "warm", threads=1),
    "training-step": Case("training step", "warm", consumer=500.0, images=600),
    "store": Case("network", "store=110ms@5MB/s", first=True),
    "little-memory": Case("disk", "disk=20MB/s+memory=250MB", "jpeg100", images=1000,
                          memory="64MiB"),
    "seeks": Case("disk", "seeks=20ms", images=400),
    "seeks-raw": Case("disk", "seeks=20ms", "raw", 512, images=400),
}
# What penstock, and what /proc, call these.
NAMES = {
    "disk": ("read", "disk"),
    "processor": ("decode", "resample", "store", "CPU", "one core"),
    "training step": ("consumer",),
    "network": ("fetch", "waiting"),
}


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    """Of `penstock-lab bottlenecks`."""

    rounds: int = option(3, "turns of each loader", short="r")
    source: str = option("", "a folder of images", positional=True)
    cases: tuple[str, ...] = option(tuple(CASES), f"of {', '.join(CASES)}", short="c")
    loaders: tuple[str, ...] = option(("penstock", "dataloader-pil"),
                                      "loaders; see 'penstock-lab loaders'")
    seconds: float = option(2.0, "shortest time of a turn, which is made of complete epochs")
    work: str = option("", "folder of what is made of the images; empty: the folder of "
                       "'penstock-lab setup'")


def check(chosen: Parameters) -> None:
    if not chosen.source:
        raise LabError("bottlenecks: expected a folder of images, found none")
    for name in chosen.loaders:
        scenario.check_loader(name, scenario.loaders())
    for name in chosen.cases:
        if name not in CASES:
            raise LabError(f"no case '{name}'; expected one of {', '.join(CASES)}")


class Bottlenecks(Question):
    """The loaders of one case are compared."""

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.chosen, self.folder = chosen, folder
        self.work = pathlib.Path(chosen.work) if chosen.work else home()

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.chosen.source)]

    def groups(self) -> list[list[Cell]]:
        return [[{"loader": loader, "case": name} for loader in self.chosen.loaders]
                for name in self.chosen.cases]

    def open(self, cell: Cell) -> Arm:
        case = CASES[cell["case"]]
        shared = {"format": case.format, "side": case.side, "storage": case.storage,
                  "threads": case.threads}
        chosen = question.Parameters(
            sources=(self.chosen.source,), consumer=case.consumer, seconds=self.chosen.seconds,
            loaders=(cell["loader"],), rounds=self.chosen.rounds)
        images = Set.of_source(self.chosen.source, self.work, case.images)
        arm = question.LoaderArm({**shared, "loader": cell["loader"]}, chosen, images,
                                 self.folder / "logs")
        if case.memory:
            arm.task["options"] = {**arm.task["options"], "memory": case.memory}
        return arm


def is_right(case: str, named: str) -> bool:
    return named in NAMES[CASES[case].expected]


def setting(case: Case) -> str:
    """'simulated disk=4MB/s, raw, longest side 512, 2 threads, steps of 200 ms'."""
    parts = [case.storage if case.storage == "warm" else f"simulated {case.storage}",
             "files as they are" if case.format == "asis" else case.format]
    parts += [f"longest side {case.side}"] if case.side else []
    parts.append(f"{case.threads} thread{'s' if case.threads > 1 else ''}")
    parts += ["first epoch"] if case.first else []
    parts += [f"simulated steps of {case.consumer:g} ms"] if case.consumer else []
    return ", ".join(parts)


def named(lines: list[Line], cell: Cell) -> str:
    """What most turns of a cell name, and whether it is right; why it is absent."""
    turns = results.turns_of(lines, cell)
    if CASES[cell["case"]].first:
        first = results.of_cell(lines, cell, "first")
        turns = [line for line in first if "bottleneck" in line] or turns
    if not turns:
        return "; ".join(f"absent: {line['reason']}"
                         for line in results.of_cell(lines, cell, "absent")) or "-"
    said = [str(turn["bottleneck"]) for turn in turns]
    right = sum(is_right(cell["case"], name) for name in said)
    verdict = "right" if right == len(said) else f"WRONG in {len(said) - right} of {len(said)}"
    return f"{figures.bottleneck_of(turns)} ({verdict})"


def rows(lines: list[Line]) -> list[list[str]]:
    """The header, and a row for each case."""
    chosen = lines[0]["parameters"]
    return [["case", "setting", "limited by", *chosen["loaders"]],
            *([name, setting(CASES[name]), CASES[name].expected,
               *(named(lines, {"loader": loader, "case": name}) for loader in chosen["loaders"])]
              for name in chosen["cases"])]


def table(lines: list[Line]) -> str:
    header, *found = rows(lines)
    return tables.markdown(header, found)
