# SPDX-License-Identifier: Apache-2.0
"""A run of a program that measures packs of photographs: its options, packs, and what it writes."""

import argparse
import pathlib
import sys

import penstock
from penstock.lab.growth.packs import Packs
from penstock.lab.loaders import report

from common import places, say

__all__ = ["Packs", "Run", "penstock"]


class Run:
    def __init__(self, parser, full, quick):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
        parser.add_argument("--quick", action="store_true", help="small counts, one short round")
        parser.add_argument("--rounds", type=int)
        parser.add_argument("--seconds", type=int)
        self.options = options = parser.parse_args()
        options.rounds = options.rounds or (1 if options.quick else 5)
        options.seconds = options.seconds or (1 if options.quick else 5)
        self.sizes = quick if options.quick else full
        self.files = places.photo_files(options.photos)
        if not self.files:
            sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
        self.packs = Packs(options.photos, places.PACKS)
        self.machine = places.machine()

    def write(self, name, rows, text, what="RandomResizedCrop 224 + flip, u8"):
        options = self.options
        head = {"kind": "parameters", "machine": self.machine, "sizes": self.sizes,
                "rounds": options.rounds, "seconds": options.seconds, "photos": len(self.files)}
        report.write(places.WORK / f"{name}.jsonl", [head, *rows])
        text = (f"{report.machine_text(self.machine)}; medians of {options.rounds} rounds of "
                f"{options.seconds} s, {what}\n\n{text}\n")
        (places.WORK / f"{name}.md").write_text(text, encoding="utf-8")
        say("\n" + text)
