#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts alone: kernels, the decoder beside libjpeg-turbo, the loader beside its parts.

    kernels.py [--photos DIR] [--rounds N] [--seconds S] [kernels] [decode] [loader]

kernels  the check_*'s of tests/kernels with --bench
decode   bench/jpeg_decode: whole images and crops, one thread, libjpeg-turbo and penstock
loader   `penstock doctor`: what the loader gives, and what it would give if its threads did
         nothing but decode, resample and store; the ratio is to be 0.95

What is printed goes to build/bench/kernels.txt, too.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from common import places
from penstock.lab.loaders import figures, report

WANTED = 0.95


class Out:
    """Prints, and keeps what was printed."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "w", encoding="utf-8")

    def say(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()


def run(out, *command):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True,
                          text=True)
    out.say(done.stdout.rstrip())
    if done.returncode:
        out.say(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.returncode != 0


def kernels(out, _):
    failed = False
    for file in sorted((places.ROOT / "tests" / "kernels").glob("check_*.c")):
        program = places.BUILD / "tests" / "kernels" / file.stem
        if program.exists():
            failed |= run(out, program, "--bench")
        else:
            out.say(f"{file.stem}: not built")
    return failed


def decode(out, options):
    program = places.BUILD / "bench" / "jpeg_decode"
    if not program.exists():
        out.say("bench/jpeg_decode: not built")
        return False
    return run(out, program, options.photos, 200, options.rounds)


def pack_of(photos):
    pack = places.WORK / "kernels.pen"
    if not (pack / "manifest").exists():
        subprocess.run([places.BUILD / "penstock", "pack", photos, "-o", pack], check=True,
                       stdout=subprocess.DEVNULL)
    return pack


def loader(out, options):
    """The ratios of several processes make the spread."""
    pack, whole, most = pack_of(options.photos), [], []
    for _ in range(options.rounds):
        command = [places.BUILD / "penstock", "doctor", pack, "--threads", "2", "--batch", "250",
                   "--seconds", str(options.seconds), "--json"]
        row = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        whole.append(row["samples_per_second"])
        rates = {one["name"]: one["samples_per_second"] for one in row["stages"]}
        most.append(1 / sum(1 / rates[name] for name in ("decode", "resample", "store")))
    result = figures.ratio(whole, most)
    out.say(f"loader {statistics.median(whole):.0f} images/s, without waits "
            f"{statistics.median(most):.0f}: {report.spread(result)}, wanted {WANTED}")
    for name, rate in rates.items():
        out.say(f"  {name:<28}{rate:10.0f} images/s alone")
    out.say(f"  bottleneck: {row['bottleneck']}")
    return False


PARTS = {"kernels": kernels, "decode": decode, "loader": loader}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    options = parser.parse_args()
    out = Out(places.WORK / "kernels.txt")
    here = places.machine()
    out.say(f"{here['cpu']}, {here['cores']} cores, {here['date']}, commit {here['commit']}")
    failed = False
    for name in options.parts or PARTS:
        if name != "kernels" and not places.photo_files(options.photos):
            out.say(f"{name}: no photographs in {options.photos}")
            continue
        failed |= PARTS[name](out, options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
