# SPDX-License-Identifier: Apache-2.0
"""Verbs that run an experiment.

Such a verb has, beside HELP, add_arguments and run:

    Parameters                  its dataclass (parameters.Base)
    question(parameters, folder) -> Question
    table(lines) -> str         optional: what is printed at the end

and uses here add_arguments(parser, Parameters) and run("verb", options).
"""

from __future__ import annotations

import argparse
import pathlib
import shlex
import sys
import time
from typing import Any

from ..errors import LabError
from . import checked, machine, parameters, report, results, sweep
from .progress import Progress
from .question import Question


def module(question: str) -> Any:
    """The verb that asks a question."""
    from .. import _cli

    found = _cli.module(question) if question in _cli.VERBS else None
    if not hasattr(found, "Parameters"):
        raise LabError(f"unknown question '{question}': no verb of penstock-lab asks it")
    return found


def add_arguments(parser: argparse.ArgumentParser, kind: type[parameters.Base]) -> None:
    """The flags of all parameters, --config, --out, --name and --write-config."""
    parameters.add_arguments(parser, kind)
    parser.add_argument("--config", metavar="FILE", help="a TOML file with parameters; flags "
                        "override it")
    parser.add_argument("--write-config", action="store_true",
                        help="print these parameters as a TOML file and end")
    parser.add_argument("--out", metavar="DIR", default="lab",
                        help="the run is DIR/QUESTION/NAME (default: lab)")
    parser.add_argument("--name", help="the name of the run (default: made of the parameters)")


def _head(question: str, asked: Question, chosen: parameters.Base, name: str,
          command: list[str]) -> dict[str, Any]:
    return {
        "question": question,
        "name": name,
        "parameters": parameters.to_dict(chosen),
        "inputs": asked.inputs(),
        "machine": machine.describe(),
        "versions": {**machine.versions(), **asked.versions()},
        "command": command,
        "date": machine.date(),
    }


def _measure(opened: report.Report, asked: Question, rounds: int) -> None:
    total, done = sweep.remaining(asked, opened, rounds)
    progress, began = Progress(total, done), time.monotonic()
    try:
        sweep.run(asked, opened, rounds, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: {progress.done} of {progress.total} turns are in {opened.path}. "
            f"Continue with: penstock-lab resume {shlex.quote(str(opened.folder))}"
        ) from None
    finally:
        progress.close()
    others = round(results.other_cores(opened.lines), 2)
    opened.append("end", date=machine.date(), seconds=round(time.monotonic() - began, 3),
                  load_after=machine.load(), other_cores=others)


def perform(question: str, chosen: parameters.Base, folder: pathlib.Path,
            command: list[str]) -> int:
    """Run or continue an experiment in FOLDER, and print its table."""
    verb = module(question)
    asked: Question = verb.question(chosen, folder)
    head = _head(question, asked, chosen, folder.name, command)
    with report.Report.open(folder, head) as opened:
        if opened.lines[-1]["kind"] == "end":
            print(f"{opened.path} is complete already; remove the folder to measure again.",
                  file=sys.stderr)
        else:
            if len(opened.lines) > 1:
                opened.append("resumed", date=machine.date(), load_before=machine.load())
                print(f"continuing {opened.path}", file=sys.stderr)
            _measure(opened, asked, chosen.rounds)
        lines = opened.lines
    print(getattr(verb, "table", results.table)(lines), end="")
    print(f"\nreport: {opened.path}")
    for text in results.all_warnings(lines):
        print(f"warning: {text}.", file=sys.stderr)
    return 0


def run(question: str, options: argparse.Namespace) -> int:
    """What the run() of such a verb does."""
    kind = module(question).Parameters
    chosen = parameters.from_options(kind, question, options)
    if options.write_config:
        print(parameters.to_toml(question, chosen), end="")
        return 0
    name = options.name or parameters.name(question, chosen)
    return perform(question, chosen, pathlib.Path(options.out) / question / name, options.command)


def from_report(place: str) -> tuple[str, parameters.Base, dict[str, Any]]:
    """The question, the parameters and the first line of a report."""
    head = checked.read(report.path_of(place))[0]
    kind = module(head["question"]).Parameters
    return head["question"], parameters.from_dict(kind, head["parameters"]), head
