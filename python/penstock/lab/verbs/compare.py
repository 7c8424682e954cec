# SPDX-License-Identifier: Apache-2.0
"""penstock-lab compare: two reports, cell by cell."""

from __future__ import annotations

import argparse
import math
import sys

from .. import tables
from ..errors import LabError
from ..experiment import report, results
from ..experiment.report import Line
from ..experiment.statistics import difference, summary
from ..experiment.sweep import label

HELP = """Compares the cells that two reports share.

A row has the mean rates of A and of B, the ratio B / A with its 95 % interval, and whether the
difference is larger than the noise: it is when the interval does not contain 1. Cells with fewer
than two turns have no interval.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the folder of a run, or its report")
    parser.add_argument("b", metavar="B", help="another one")


def verdict(larger: bool, low: float) -> str:
    if math.isnan(low):
        return "unknown: one turn"
    return "larger than the noise" if larger else "within the noise"


def rows(a: list[Line], b: list[Line]) -> list[list[str]]:
    found = []
    for cell in results.cells(a).values():
        old, new = results.rates(a, cell), results.rates(b, cell)
        if not old or not new:
            continue
        answer = difference(new, old)
        known = not math.isnan(answer.low)
        found.append([
            label(cell), f"{summary(old).mean:,.1f}", f"{summary(new).mean:,.1f}",
            f"{answer.ratio:.3f}", f"{answer.low:.3f} to {answer.high:.3f}" if known else "-",
            verdict(answer.larger_than_noise, answer.low),
        ])
    return found


def run(options: argparse.Namespace) -> int:
    a, b = report.read(options.a), report.read(options.b)
    found = rows(a, b)
    if not found:
        raise LabError(f"'{options.a}' and '{options.b}' share no measured cell")
    header = ["cell", "A samples/s", "B samples/s", "B / A", "95 % interval", "difference"]
    print(tables.markdown(header, found), end="")
    for change in report.changes(a[0], b[0]):
        print(f"note: the runs differ in {change.replace(' in the report, now ', ' in A, ')} in B",
              file=sys.stderr)
    return 0
