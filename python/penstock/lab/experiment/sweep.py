# SPDX-License-Identifier: Apache-2.0
"""Measure the cells of a question in turns, and continue where an earlier process stopped."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from ..errors import Absent
from . import machine
from .progress import Progress
from .question import WARM_UP, Arm, Cell, Question
from .report import Line, Report


def key(cell: Cell) -> str:
    """The same text for the same cell, whatever the order of its axes."""
    return json.dumps(cell, sort_keys=True)


def label(cell: Cell) -> str:
    return " ".join(f"{axis}={value}" for axis, value in cell.items())


class _Done:
    """What a report has already."""

    def __init__(self, lines: list[Line]) -> None:
        self.absent = {key(x["cell"]) for x in lines if x["kind"] == "absent"}
        self.prepared = {key(x["cell"]) for x in lines if x["kind"] == "prepared"}
        self.first = {key(x["cell"]) for x in lines if x["kind"] == "first"}
        self.turns = {(key(x["cell"]), x["round"]) for x in lines if x["kind"] == "turn"}

    def missing(self, cell: Cell, rounds: int) -> int:
        """How many turns the cell still needs."""
        if key(cell) in self.absent:
            return 0
        return sum((key(cell), number) not in self.turns for number in range(rounds))


class _Group:
    """Cells that are compared: their arms are open at a time."""

    def __init__(
        self, question: Question, report: Report, rounds: int, progress: Progress
    ) -> None:
        self.question, self.report, self.progress = question, report, progress
        self.arms: dict[str, tuple[Cell, Arm]] = {}
        self.rounds, self.done = rounds, _Done(report.lines)

    def leave_out(self, cell: Cell, reason: Absent) -> None:
        self.progress.total -= _Done(self.report.lines).missing(cell, self.rounds)
        self.progress.say(f"{label(cell)}: absent: {reason}")
        self.report.append("absent", cell=dict(cell), reason=str(reason))
        opened = self.arms.pop(key(cell), None)
        if opened is not None:
            opened[1].close()

    def measure(self, cell: Cell, arm: Arm, number: int) -> dict[str, Any]:
        """A turn, with the processor time that others used in the meantime."""
        self.progress.start(label(cell))
        busy, own = machine.busy_seconds(), machine.own_seconds()
        began = time.monotonic()
        figures = arm.turn(number)
        wall, busy = time.monotonic() - began, machine.busy_seconds() - busy
        # An arm counts its worker processes; what it does around a measurement is not in "cpu".
        own = max(machine.own_seconds() - own, float(figures.get("cpu", 0.0)))
        others = max(0.0, busy - own)
        return {**figures, "wall": round(wall, 6), "other_cpu": round(others, 2)}

    def open(self, cell: Cell) -> None:
        """Prepare an arm and warm it up; the report keeps that of the first time."""
        self.progress.start(f"{label(cell)}: preparing")
        try:
            arm = self.question.open(cell)
            self.arms[key(cell)] = cell, arm
            prepared = arm.prepared()
            if key(cell) not in self.done.prepared:
                self.report.append("prepared", cell=dict(cell), **prepared)
            for check in arm.shapes():
                self.report.append("shape", cell=dict(cell), **check)
            if self.question.warm_up:
                first = self.measure(cell, arm, WARM_UP)
                if key(cell) not in self.done.first:
                    self.report.append("first", cell=dict(cell), **first)
        except Absent as reason:
            self.leave_out(cell, reason)

    def round(self, number: int) -> None:
        for cell, arm in list(self.arms.values()):
            if (key(cell), number) in self.done.turns:
                continue
            try:
                figures = self.measure(cell, arm, number)
            except Absent as reason:
                self.leave_out(cell, reason)
                continue
            self.report.append("turn", cell=dict(cell), round=number, **figures)
            self.progress.step(label(cell))

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            for _, arm in self.arms.values():
                stack.callback(arm.close)


def remaining(question: Question, report: Report, rounds: int) -> tuple[int, int]:
    """Turns of the sweep, and how many of them are in the report."""
    done = _Done(report.lines)
    missing = sum(done.missing(cell, rounds) for group in question.groups() for cell in group)
    return missing + len(done.turns), len(done.turns)


def run(question: Question, report: Report, rounds: int, progress: Progress) -> None:
    """Measure all that the report does not have yet."""
    done = _Done(report.lines)
    try:
        for cells in question.groups():
            needed = [cell for cell in cells if done.missing(cell, rounds)]
            group = _Group(question, report, rounds, progress)
            try:
                for cell in needed:
                    group.open(cell)
                for number in range(rounds):
                    group.round(number)
            finally:
                group.close()
    finally:
        question.close()
