#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""WebDataset tars on disk: how fast they are indexed, and how soon the first batch comes.

    build/venv/bin/python bench/in_place.py [--photos DIR] [--tars N] [--copies N] [--rounds N]
                                            [--cold]

`penstock index` and `penstock pack` are compared with `cat` of the same tars. The time to the first
batch includes `penstock index` of tars without a pack; the WebDataset library needs no index. All
modules are imported before the clock starts. The sides take turns; a figure is the median of the
rounds. With --cold the tars are removed from the page cache before each measurement. For training
on tars, see the scenario in-place of `penstock-lab load`. The tars (1.1 GB by default) stay in
build/bench/in-place-*. Writes build/bench/in-place-index.jsonl and .md.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from common import places, say
from penstock.lab.errors import Absent
from penstock.lab.loaders import report, scenario, workers
from penstock.lab.loaders.workers import TURN_SECONDS, Worker
from sides.tars import write_tars

TASK = {"transform": "train", "size": 224, "short": 256, "batch": 250, "threads": 2, "set": "asis"}
# Name, arguments of the program.
COMMANDS = {"penstock index": ["index"], "penstock index, one thread": ["index", "--threads", "1"],
            "penstock pack": ["pack"]}
FIRST = {"first batch, penstock": "penstock-in-place", "first batch, WebDataset": "webdataset"}


class Tars:
    def __init__(self, files, options):
        self.options = options
        self.folder = places.WORK / f"in-place-{len(files)}-{options.tars}"
        self.list = self.folder / "files.txt"
        self.index = self.folder / "tars-asis-index.pen"  # as worker/sides/penstock.py names it
        self.folder.mkdir(parents=True, exist_ok=True)
        self.list.write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
        self.tars = write_tars(self.folder / "tars-asis", files, options.tars)
        self.bytes = sum(map(os.path.getsize, self.tars))
        os.sync()
        self.run(["cat", *self.tars])  # into the page cache

    def cool(self):
        """Out of the page cache, if that is wanted."""
        for tar in self.tars if self.options.cold else ():
            descriptor = os.open(tar, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def run(self, command):
        self.cool()
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    def make(self, arguments):
        pack = self.folder / "made.pen"
        shutil.rmtree(pack, ignore_errors=True)
        seconds = self.run([places.BUILD / "penstock", *arguments, *self.tars, "-o", pack])
        size = sum(file.stat().st_size for file in pack.rglob("*") if file.is_file())
        return {"seconds": seconds, "pack_bytes": size}

    def first(self, name):
        """In a process of its own, whose modules are imported before the clock starts."""
        spec = scenario.loaders()[name]
        shutil.rmtree(self.index, ignore_errors=True)
        worker = Worker(name, spec, workers.python_for(spec), self.folder / f"{name}.log")
        try:
            self.cool()
            return worker.ask(TURN_SECONDS, do="first", task={
                **TASK, "options": spec["options"], "work": str(self.folder),
                "list": str(self.list)})
        finally:
            worker.stop()

    def round(self):
        """{side: its figures}; one that is absent has a reason instead."""
        found = {"cat": {"seconds": self.run(["cat", *self.tars])}}
        for name, arguments in COMMANDS.items():
            found[name] = self.make(arguments)
        for name, loader in FIRST.items():
            try:
                found[name] = self.first(loader)
            except Absent as why:
                found[name] = {"absent": str(why)}
        return found


def table(tars, rounds):
    rows = [["", "seconds (min-max)", "MB/s", "/ cat", "pack / tars, %"]]
    base = statistics.median(found["cat"]["seconds"] for found in rounds)
    for name, last in rounds[-1].items():
        if "absent" in last:
            rows.append([name, f"absent: {last['absent']}", "", "", ""])
            continue
        seconds = [found[name]["seconds"] for found in rounds]
        middle, reads_all = statistics.median(seconds), name not in FIRST
        pack = f"{last['pack_bytes'] / tars.bytes * 100:.1f}" if "pack_bytes" in last else ""
        rows.append([name, f"{middle:.2f} ({min(seconds):.2f}-{max(seconds):.2f})",
                     f"{tars.bytes / middle / 1e6:,.0f}" if reads_all else "",
                     f"{base / middle:.2f}" if reads_all else "", pack])
    return report.table(rows)


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--tars", type=int, default=100)
    parser.add_argument("--copies", type=int, default=10, help="of each photograph (10)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="without the page cache")
    return parser.parse_args()


def main():
    options = options_of()
    files = places.photo_files(options.photos) * options.copies
    if not files:
        sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
    here, tars, rounds = places.machine(), Tars(files, options), []
    for number in range(options.rounds):
        rounds.append(tars.round())
        say(f"  round {number + 1} of {options.rounds}")
    head = {"kind": "parameters", "machine": here, "samples": len(files), "bytes": tars.bytes,
            "tars": options.tars, "cold": options.cold}
    report.write(places.WORK / "in-place-index.jsonl",
                 [head, *({"kind": "round", **found} for found in rounds)])
    text = (f"{report.machine_text(here)}; {options.tars} tars of {len(files):,} photographs, "
            f"{tars.bytes / 1e6:,.0f} MB, {'not in' if options.cold else 'in'} the page cache; "
            f"medians of {options.rounds} rounds\n\n{table(tars, rounds)}\n")
    (places.WORK / "in-place-index.md").write_text(text, encoding="utf-8")
    say("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
