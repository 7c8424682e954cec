#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the loading speed of this build with another build of the program, in turns.

    builds.py --old PROGRAM [--photos FOLDER] [--rounds N] [--seconds S] [--floor R]
    builds.py --old PROGRAM --instructions
    builds.py --old PROGRAM --trace ENDING [--instructions]

Packs the photographs three times: as they are (train), raw at most 256 pixels long (raw256), and
encoded anew (encoded). In each round both programs run `penstock doctor` on every pack
with two threads; which one begins alternates. Prints the median of the ratios new : old with their
quartiles, for samples/s and for CPU time per sample, and ends with 1 when a median of samples/s is
below --floor (default 0.98).

With --instructions it counts instead of timing: the instructions that a sample takes, by valgrind's
callgrind. The Python package beside each program loads 20 and then 220 samples with one thread and
AVX2 kernels, and the difference is divided by 200. Other programs on the machine do not change
these numbers much.

With --trace json or --trace json.gz the new program writes a trace of each run, the old one does
not; both may be the same program. Instructions are counted without the sampler of CPU and memory,
which runs by the clock: under valgrind it would run far more often for each sample.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKS = {
    "train": ["--mode", "keep"],
    "raw256": ["--mode", "raw", "--max-side", "256"],
    "encoded": ["--mode", "encode", "--max-side", "512", "--quality", "90"],
}


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=600)
    if done.returncode:
        sys.exit(f"{program} {arguments[0]}: {done.stderr}")
    return done.stdout


def rate(program, pack, seconds, trace):
    """Samples per second, and per CPU second."""
    found = json.loads(run(program, "doctor", pack, "--threads", 2, "--seconds", seconds, "--json",
                           *(["--trace", trace] if trace else [])))
    return found["samples_per_second"], 1000 / found["cpu_seconds_per_1000_samples"]


def measure(options, folder):
    """{name of a pack: [(old, new) of each round]}"""
    rates = {name: [] for name in PACKS}
    for number in range(options.rounds):
        for name in PACKS:
            sides = [(options.old, None), (options.new, trace_of(options, folder))]
            found = {side: rate(side[0], folder / f"{name}.pen", options.seconds, side[1])
                     for side in (sides if number % 2 else sides[::-1])}
            rates[name].append(tuple(found[side] for side in sides))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return rates


LOAD = """
import contextlib, sys, penstock
path = sys.argv[3]
trace = penstock.trace(path, samples_per_second=0) if path else contextlib.nullcontext()
with trace, penstock.Loader(
        sys.argv[1], 20, shuffle=True, seed=1, output="numpy", threads=1,
        subset=list(range(int(sys.argv[2]))),
        pipeline="decode | random_resized_crop 224 | hflip | tensor u8") as loader:
    for _ in loader:
        pass
"""


def trace_of(options, folder):
    return str(folder / f"run.{options.trace}") if options.trace else None


def environment(program, folder):
    """In which Python does the same in every run: it has compiled its modules, its hashes do not
    differ, and NumPy starts no threads, which would spin for as long as the clock says."""
    return {**os.environ, "PENSTOCK_CPU": "avx2", "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
            "PYTHONPATH": str(pathlib.Path(program).parent / "python")}


def count(program, pack, samples, trace):
    """All instructions of a process that loads so many samples."""
    load = [sys.executable, "-c", LOAD, pack, str(samples), trace or ""]
    env = environment(program, pack.parent)
    subprocess.run(load, check=True, timeout=600, env=env)  # compiles the modules
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *load],
        capture_output=True, text=True, check=False, timeout=3600, env=env)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"valgrind: {done.stderr[-2000:]}")
    return int(found[1])


def report_instructions(options, folder):
    print("| pack | old, instructions a sample | new | old : new |\n|---|---:|---:|---:|")
    lowest = 1.0
    for name in PACKS:
        pack = folder / f"{name}.pen"
        old, new = ((count(p, pack, 220, trace) - count(p, pack, 20, trace)) // 200
                    for p, trace in ((options.old, None),
                                     (options.new, trace_of(options, folder))))
        lowest = min(lowest, old / new)
        print(f"| {name} | {old:,} | {new:,} | {old / new:.3f} |", flush=True)
    return lowest


def ratio(rounds, which):
    """The quartiles of new : old; which is 0 for samples per second, 1 per CPU second."""
    return statistics.quantiles([new[which] / old[which] for old, new in rounds], n=4)


def report(rates):
    """Prints a table; returns the lowest median of the ratios of samples per second."""
    print("| pack | old, samples/s | new, samples/s | new : old | per CPU second |")
    print("|---|---:|---:|---:|---:|")
    medians = []
    for name, rounds in rates.items():
        old, new = (statistics.median(r[0] for r in side) for side in zip(*rounds, strict=True))
        cells = [ratio(rounds, 0), ratio(rounds, 1)]
        medians.append(cells[0][1])
        print(f"| {name} | {old:,.0f} | {new:,.0f} | "
              + " | ".join(f"{mid:.3f} ({low:.2f}-{high:.2f})" for low, mid, high in cells) + " |")
    return min(medians)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", default=str(ROOT / "build" / "penstock"))
    parser.add_argument("--photos", default=ROOT.parent / "shared" / "data" / "photos")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--floor", type=float, default=0.98)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--trace", choices=["json", "json.gz"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, how in PACKS.items():
            run(options.old, "pack", options.photos, "-o", folder / f"{name}.pen", *how)
        lowest = (report_instructions(options, folder) if options.instructions
                  else report(measure(options, folder)))
        return int(lowest < options.floor)


if __name__ == "__main__":
    sys.exit(main())
