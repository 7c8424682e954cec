# SPDX-License-Identifier: Apache-2.0
"""penstock-lab resume: continue a run."""

from __future__ import annotations

import argparse

from ..experiment import command, report

HELP = """Continues a run that was interrupted.

The first line of the report has all parameters. Turns that the report has are not measured again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="REPORT", help="the folder of the run, or its report")


def run(options: argparse.Namespace) -> int:
    question, chosen, _ = command.from_report(options.report)
    folder = report.path_of(options.report).parent
    return command.perform(question, chosen, folder, options.command)
