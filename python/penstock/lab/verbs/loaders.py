# SPDX-License-Identifier: Apache-2.0
"""penstock-lab loaders: what can be compared here."""

from __future__ import annotations

import argparse

from .. import tables
from ..errors import Absent
from ..loaders import scenario, workers

HELP = """Lists the loaders and the scenarios of 'penstock-lab load'.

A loader is ready, or absent with the reason. 'penstock-lab setup NAME' installs an environment.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def state(spec: dict[str, object]) -> str:
    try:
        workers.python_for(spec)
    except Absent as why:
        return f"absent: {why}"
    return "ready"


def run(options: argparse.Namespace) -> int:
    rows = [[name, str(spec["title"]), spec["environment"] or "-", state(spec)]
            for name, spec in scenario.loaders().items()]
    print(tables.markdown(["loader", "what it is", "environment", "state"], rows))
    print(tables.markdown(["scenario", "title"], [[name, scenario.title_of(name)]
                                                  for name in scenario.names()]), end="")
    return 0
