# SPDX-License-Identifier: Apache-2.0
"""penstock-lab load: how fast loaders deliver batches, and what limits them."""

from __future__ import annotations

import argparse
import pathlib

from ..errors import LabError
from ..experiment import command
from ..loaders import report, scenario
from ..loaders.question import Load, Parameters

HELP = """Compares data loaders on your images and your machine.

SOURCES are folders of images, or packs. Each loader is a process of its own. It stores the images
in its format, shows the pixels of fixed crops, which are compared with a reference, and takes its
turn in every round. A turn is made of complete epochs, each of which must deliver every image once.
Loaders that are not installed are reported as absent: see 'penstock-lab setup'.

  penstock-lab load photos --loaders penstock,dataloader-pil,webdataset
  penstock-lab load photos --formats asis,jpeg90 --sides 0,512 --threads 1,2 --consumer 50
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)
    parser.add_argument("--scenario", metavar="NAME", help="a comparison that the lab describes: "
                        "see 'penstock-lab loaders'; flags override it")


def question(chosen: Parameters, folder: pathlib.Path) -> Load:
    return Load(chosen, folder)


def run(options: argparse.Namespace) -> int:
    if options.scenario:
        if options.config:
            raise LabError("load: expected --scenario or --config, found both")
        options.config = str(scenario.path_of(options.scenario))
    return command.run("load", options)


table = report.markdown
