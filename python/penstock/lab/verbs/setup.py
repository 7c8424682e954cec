# SPDX-License-Identifier: Apache-2.0
"""penstock-lab setup: install the loaders that penstock is compared with."""

from __future__ import annotations

import argparse

from ..loaders import environments, scenario

HELP = """Installs other loaders, each in a virtual environment of its own.

Without names it installs the environments of all loaders. They are in $PENSTOCK_LAB_HOME, or in
~/.cache/penstock-lab. What cannot be installed is reported as absent, with the reason; comparisons
then leave it out. 'penstock-lab loaders' lists loaders and their environments.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="an environment, such as dali")
    parser.add_argument("--again", action="store_true",
                        help="also install what is there, or failed before")


def needed() -> list[str]:
    """The environments of all loaders, in their order."""
    names = (spec["environment"] for spec in scenario.loaders().values())
    return list(dict.fromkeys(name for name in names if name))


def run(options: argparse.Namespace) -> int:
    names = options.names or needed()
    for name in names:
        environments.spec_of(name)
    for name in names:
        print(f"{name}: ...", flush=True)
        why = environments.setup(name, options.again)
        versions = environments.installed(name) if why is None else {}
        text = ", ".join(f"{key} {value}" for key, value in versions.items())
        print(f"{name}: absent: {why}" if why else f"{name}: {text}", flush=True)
    return 0
