# SPDX-License-Identifier: Apache-2.0
"""penstock-lab advise: the cheapest configuration that reaches a rate."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from ..advice import configurations, text
from ..advice.limits import Machine
from ..errors import LabError

HELP = """Finds the cheapest configuration that reaches a rate.

It reads reports of 'penstock-lab load'. For the machine of the reports it uses the measured rates.
With --cores, --disk or --bandwidth it also computes what a machine that you describe would reach:
its cores divided by the measured CPU time of an image, its disk and network divided by the bytes of
an image. The lowest of these limits decides. The output says what was measured and what was
extrapolated.

  penstock-lab advise lab/load --rate 3000
  penstock-lab advise lab/load --rate 3000 --cores 16 --disk 500
  penstock-lab advise lab/load --rate 3000 --where loader=penstock --where side=512
"""


def positive(kind: Callable[[float], Any]) -> Callable[[str], Any]:
    def parse(word: str) -> Any:
        value = kind(float(word))
        if value <= 0 or value != float(word):
            raise ValueError
        return value

    parse.__name__ = "positive number" if kind is float else "positive integer"
    return parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reports", metavar="REPORTS", nargs="+",
                        help="reports of 'penstock-lab load', or folders with them")
    number, count = positive(float), positive(int)
    for flag, kind, name, help_text in (
        ("--cores", count, "N", "cores of the described machine"),
        ("--disk", number, "MB/s", "bandwidth of its disk"),
        ("--bandwidth", number, "MB/s", "bandwidth of its network"),
    ):
        parser.add_argument(flag, type=kind, metavar=name, help=help_text)
    parser.add_argument("--rate", type=number, required=True, metavar="N",
                        help="images per second that each node needs")
    parser.add_argument("--samples", type=count, metavar="N", default=1_000_000,
                        help="images of the dataset (default: 1000000)")
    parser.add_argument("--where", action="append", default=[], metavar="AXIS=VALUE",
                        help="use only these cells; may be repeated")


def machines(found: list[configurations.Configuration]) -> list[str]:
    return list({f"{one.machine.get('cpu')}, {one.machine.get('cores')} cores": 0
                 for one in found})


def run(options: argparse.Namespace) -> int:
    reports = configurations.find(options.reports)
    found = configurations.from_reports(reports, options.where)
    if len(machines(found)) > 1:
        raise LabError(f"the reports are of several machines: {'; '.join(machines(found))}. "
                       "Pass the reports of one machine")
    machine = Machine(options.cores, options.disk, options.bandwidth)
    for warning in configurations.warnings(reports):
        print(f"warning: {warning}.", file=sys.stderr)
    print(text.measured(found, options.rate, options.samples))
    if machine.is_described():
        print()
        print(text.Extrapolation(found, machine, options.rate, options.samples).text())
    print()
    print(text.MEASURED, end="")
    if machine.is_described():
        print(text.EXTRAPOLATED, end="")
    return 0
