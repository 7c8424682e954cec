# SPDX-License-Identifier: Apache-2.0
"""penstock-lab run: an experiment from a TOML file."""

from __future__ import annotations

import argparse
import pathlib

from ..errors import LabError
from ..experiment import command, parameters

HELP = """Runs the experiment that a TOML file describes.

The key 'question' names the verb, and the other keys are its parameters:

    question = "load"
    sources = ["photos.pen"]
    threads = [1, 2]

'penstock-lab QUESTION --write-config' prints such a file with all parameters. The same command
continues a run that was interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the TOML file")
    parser.add_argument("--out", metavar="DIR", default="lab",
                        help="the run is DIR/QUESTION/NAME (default: lab)")
    parser.add_argument("--name", help="the name of the run (default: made of the parameters)")


def run(options: argparse.Namespace) -> int:
    values = parameters.read_toml(options.file)
    question = values.pop("question", None)
    if not isinstance(question, str):
        raise LabError(f"experiment '{options.file}' has no question. Add a line such as "
                       'question = "load"')
    chosen = parameters.from_dict(command.module(question).Parameters, values)
    name = options.name or parameters.name(question, chosen)
    folder = pathlib.Path(options.out) / question / name
    return command.perform(question, chosen, folder, options.command)
