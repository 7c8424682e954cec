#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mixture of 35 packs against one pack of the same samples: speed, threads and memory; one table.

    build/venv/bin/python bench/mix_speed.py [--quick] [--photos DIR]

The photographs are written once into one pack, and once into 35 packs, whose weights are their
sizes. In each round a loader of each loads with two threads; which one begins alternates. The rate
is the median of the rounds; a busy machine disturbs the CPU time per sample less.
The packs stay in build/bench/packs. Writes build/bench/mix.jsonl and mix.md.
"""

import argparse
import os
import resource
import statistics
import sys
import time

from common import say
from common.run import Run, penstock
from penstock.lab.growth.question import PIPELINE as TRAIN
from penstock.lab.loaders import report

FULL = {"packs": (10_000,)}
QUICK = {"packs": (1000,)}
SOURCES = 35
AIM = 0.97


def write(folder, pack, source, of):
    """Every `of`-th sample of a pack, from `source` on, as a pack."""
    path = folder / f"mix-{len(pack)}-{source}-of-{of}.pen"
    if not (path / "manifest").exists():
        schema = {"image": "image", "label": "i64"}
        with penstock.Writer(path, schema) as writer:
            for number in range(source, len(pack), of):
                writer.add(**{name: pack.read(number, name) for name in schema})
    return path


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(data, options):
    """(samples/s, CPU milliseconds per sample, threads, bytes) of one loader."""
    with penstock.Loader(data, 64, shuffle=True, drop_last=True, pipeline=TRAIN, threads=2,
                          output="numpy", memory="512MiB") as loader:
        samples, begin, cpu, end = 0, 0.0, 0.0, 0.0
        while True:
            for _ in loader:
                now = time.perf_counter()
                if not begin:  # the first batch starts the threads
                    begin, cpu, end = now, cpu_seconds(), now + options.seconds
                    continue
                samples += 64
                if now >= end:
                    threads = len(os.listdir("/proc/self/task"))
                    return (samples / (now - begin), 1000 * (cpu_seconds() - cpu) / samples,
                            threads, loader.stats()["memory_peak_bytes"])


def measured(cases, options):
    found = {name: [] for name in cases}
    for number in range(options.rounds):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            found[name].append(measure(cases[name], options))
        say(f"  round {number + 1} of {options.rounds}")
    return found


def main():
    run = Run(argparse.ArgumentParser(description=__doc__), FULL, QUICK)
    with penstock.open(run.packs.of_count(run.sizes["packs"][0])) as pack:
        one = write(run.packs.folder, pack, 0, 1)
        parts = [write(run.packs.folder, pack, i, SOURCES) for i in range(SOURCES)]
    packs = [penstock.open(path) for path in parts]
    mixed = penstock.mix([(each, len(each)) for each in packs])
    found = measured({"one pack": penstock.open(one), f"{SOURCES} packs": mixed}, run.options)
    lines = [["data", "samples/s", "CPU ms per sample", "threads", "memory, MiB"]]
    rows = []
    for name, rounds in found.items():
        rate, cpu, threads, memory = (statistics.median(values) for values in zip(*rounds))
        rows.append({"kind": "mix", "data": name, "samples_per_second": rate, "cpu_ms": cpu,
                     "threads": threads, "memory_bytes": memory})
        lines.append([name, f"{rate:.0f}", f"{cpu:.3f}", f"{threads:.0f}", f"{memory / 2**20:.0f}"])
    pairs = list(zip(*found.values()))
    rate = statistics.median(mix[0] / alone[0] for alone, mix in pairs)
    cpu = statistics.median(alone[1] / mix[1] for alone, mix in pairs)
    text = report.table(lines) + (
        f"\n- {SOURCES} packs load {rate:.3f} times as fast as one pack (aim: at least {AIM}); by "
        f"CPU time per sample, {cpu:.3f} times; median of {len(pairs)} rounds")
    run.write("mix", rows, text, "a mixture of packs, u8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
