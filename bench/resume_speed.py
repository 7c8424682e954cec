#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to pack many small files, and to scan them a second time when a run is resumed.

    resume_speed.py [--penstock PROGRAM] [--old PROGRAM] [--files N] [--rounds N] [--work DIR]

pack    `pack --mode keep --no-index` of N files of about 1 kB in 20 class folders, 2 threads. With
        --old the same by another build of the program; the two take turns.
scan    `plan` a second time over the same files: what a resumed run does before it continues.

Prints medians of wall-clock and processor time (user + system), with the range of the rounds.
Processor time is the steadier figure on a machine that does other work.
"""

import argparse
import io
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLASSES = 20


def make_files(folder, n):
    for c in range(CLASSES):
        (folder / f"class{c:02}").mkdir(parents=True)
    dice = random.Random(1)
    for i in range(n):
        out = io.BytesIO()
        Image.frombytes("RGB", (16, 12), dice.randbytes(576)).save(out, "JPEG")
        (folder / f"class{i % CLASSES:02}" / f"{i:06}.jpg").write_bytes(out.getvalue())


def timed(*command):
    """Seconds of wall-clock and of processor time."""
    begin = time.monotonic()
    process = subprocess.Popen([os.fspath(part) for part in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} {command[1]} ended with {process.returncode}: {errors.decode()}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime


def line(name, rounds):
    wall, cpu = zip(*rounds, strict=True)
    return (f"{name:<12} {statistics.median(wall):6.2f} s ({min(wall):.2f}-{max(wall):.2f}), "
            f"processor {statistics.median(cpu):6.2f} s ({min(cpu):.2f}-{max(cpu):.2f})")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penstock", type=pathlib.Path, default=ROOT / "build" / "penstock")
    parser.add_argument("--old", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=pathlib.Path)
    options = parser.parse_args()
    programs = {"pack": options.penstock}
    if options.old:
        programs["pack, old"] = options.old
    found = {name: [] for name in [*programs, "scan"]}
    with tempfile.TemporaryDirectory(dir=options.work) as top:
        folder, out = pathlib.Path(top) / "in", pathlib.Path(top) / "a.pen"
        make_files(folder, options.files)
        for turn in range(options.rounds):
            order = list(programs.items())
            for name, program in order if turn % 2 else reversed(order):
                found[name].append(timed(program, "pack", folder, "-o", out, "--mode", "keep",
                                         "--no-index", "--threads", "2"))
                shutil.rmtree(out)
            timed(options.penstock, "plan", folder, "-o", out, "--mode", "keep")
            found["scan"].append(timed(options.penstock, "plan", folder, "-o", out, "--mode",
                                       "keep"))
            shutil.rmtree(out)
    print(f"{options.files} files, {options.rounds} rounds")
    for name, rounds in found.items():
        print(line(name, rounds))


if __name__ == "__main__":
    main()
