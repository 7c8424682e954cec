# SPDX-License-Identifier: Apache-2.0
"""penstock-lab rerun: repeat a run."""

from __future__ import annotations

import argparse
import pathlib
import sys

from ..experiment import command, report

HELP = """Repeats a run with the parameters of the first line of its report.

The new run is a folder of its own: 'penstock-lab compare OLD NEW' then says whether the two differ
by more than the noise. A warning names inputs that have changed since.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="REPORT", help="the folder of the run, or its report")
    parser.add_argument("--out", metavar="DIR", help="the new run is DIR/QUESTION/NAME (default: "
                        "next to the old one, as NAME-2, NAME-3 ...)")


def _beside(old: pathlib.Path) -> pathlib.Path:
    """The first free name next to the old run."""
    number = 2
    while (old.parent / f"{old.name}-{number}").exists():
        number += 1
    return old.parent / f"{old.name}-{number}"


def run(options: argparse.Namespace) -> int:
    question, chosen, head = command.from_report(options.report)
    if options.out:
        folder = pathlib.Path(options.out) / question / head["name"]
    else:
        folder = _beside(report.path_of(options.report).resolve().parent)
    code = command.perform(question, chosen, folder, options.command)
    for change in report.changes(head, report.read(folder)[0]):
        print(f"warning: {change}", file=sys.stderr)
    return code
