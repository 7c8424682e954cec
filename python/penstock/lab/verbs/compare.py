# SPDX-License-Identifier: Apache-2.0
"""penstock-lab compare: two reports, cell by cell."""

from __future__ import annotations

import argparse
import math
import sys

from .. import tables
from ..errors import LabError
from ..experiment import checked, report, results
from ..experiment.report import Line
from ..experiment.statistics import difference, summary
from ..experiment.sweep import label

HELP = """Compares the cells that two reports share.

A row has the means of A and of B, the ratio B / A with its 95 % interval, and whether the
difference is larger than the noise: it is when the interval does not contain 1. Cells with fewer
than two turns have no interval.

By default the rates of the turns are compared, in samples per second. --metric cpu_per_1000
compares the seconds of CPU time for 1,000 samples; any other number of the turns has its own name.

The interval has the noise within the two runs. If another program disturbed one of them, a warning
names it, and the difference may come from there.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the folder of a run, or its report")
    parser.add_argument("b", metavar="B", help="another one")
    parser.add_argument("--metric", default="rate", help="the number to compare (default: rate)")


def verdict(larger: bool, low: float) -> str:
    if math.isnan(low):
        return "unknown: one turn"
    return "larger than the noise" if larger else "within the noise"


def number(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def rows(a: list[Line], b: list[Line], metric: str) -> list[list[str]]:
    found = []
    for cell in results.cells(a).values():
        old, new = (results.values(lines, cell, metric) for lines in (a, b))
        if not old or not new:
            continue
        means = [label(cell), number(summary(old).mean), number(summary(new).mean)]
        if min(*old, *new) <= 0:
            found.append([*means, "-", "-", "unknown: not all values are positive"])
            continue
        answer = difference(new, old)
        known = not math.isnan(answer.low)
        found.append([
            *means, f"{answer.ratio:.3f}",
            f"{answer.low:.3f} to {answer.high:.3f}" if known else "-",
            verdict(answer.larger_than_noise, answer.low),
        ])
    return found


def metrics(lines: list[Line]) -> list[str]:
    """What can be compared: numbers of the turns."""
    turns = [line for line in lines if line["kind"] == "turn"]
    names = {name for turn in turns for name, value in turn.items()
             if isinstance(value, (int, float)) and name != "round"}
    return ["rate", "cpu_per_1000", *sorted(names)] if turns else []


def run(options: argparse.Namespace) -> int:
    a, b = (checked.read(report.path_of(place)) for place in (options.a, options.b))
    found = rows(a, b, options.metric)
    if not found:
        raise LabError(f"'{options.a}' and '{options.b}' share no cell with turns that have "
                       f"{options.metric}; A has {', '.join(metrics(a)) or 'no turns'}")
    unit = "samples/s" if options.metric == "rate" else options.metric
    header = ["cell", f"A {unit}", f"B {unit}", "B / A", "95 % interval", "difference"]
    print(tables.markdown(header, found), end="")
    for name, lines in (("A", a), ("B", b)):
        for text in results.all_warnings(lines):
            print(f"warning: {name}: {text}.", file=sys.stderr)
    for change in report.changes(a[0], b[0]):
        print(f"note: the runs differ in {change.replace(' in the report, now ', ' in A, ')} in B",
              file=sys.stderr)
    return 0
