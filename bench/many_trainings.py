#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rate and memory of several trainings on one machine that share a pack, against one training.

    many_trainings.py PACK [--trainings 1,8] [--ways preload,cache] [--seconds S] [--rounds N]
                      [--cache DIR]

Each training is a process with a loader that shuffles, decodes and crops to 224 x 224, and does
nothing else. The ways take turns, and so do the numbers of trainings.

preload  preload=True: one copy of the pack in memory, for all processes of a user
cache    a cache in DIR (default: a new directory in /dev/shm, which is memory)

Prints medians: samples per second of all trainings together; PSS, the sum of the memory of all
processes in which pages that n of them share count 1/n; and how much shared memory (memfd and
tmpfs: "Shmem" of /proc/meminfo) the trainings added, which PSS leaves out because nobody maps it.
Run it when nothing else uses shared memory. With one copy, the shared memory is the same for 1 and
for 8.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

TRAINING = """
import json, sys, time
import numpy, penstock
pack, way, place, threads, seconds = json.loads(sys.argv[1])
settings = dict(batch_size=64, shuffle=True, threads=threads, output="numpy", memory="256MiB",
                pipeline="decode | random_resized_crop 224 | hflip | tensor u8")
if way == "preload":
    settings["preload"] = True
else:
    settings["cache"] = place
with penstock.Loader(pack, **settings) as loader:
    for batch in loader:  # one epoch fills the cache
        pass
    print("ready", flush=True)
    sys.stdin.readline()
    samples, end = 0, time.monotonic() + seconds
    begin = time.monotonic()
    while time.monotonic() < end:
        for image, _ in loader:
            samples += len(image)
            if time.monotonic() >= end:
                break
    seconds = time.monotonic() - begin
    with open("/proc/self/smaps_rollup") as file:
        pss = sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    print(json.dumps({"samples": samples, "seconds": seconds, "pss": pss * 1024}), flush=True)
    sys.stdin.readline()
"""


def shmem():
    text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return int(text.split("Shmem:")[1].split()[0]) * 1024


@contextlib.contextmanager
def cache_place(options, way):
    """A new directory for the cache; None without one."""
    if way != "cache":
        yield None
        return
    place = tempfile.mkdtemp(prefix="penstock-many-", dir=options.cache)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def start(options, way, place, n):
    threads = max(1, len(os.sched_getaffinity(0)) // n)
    what = [str(options.pack.resolve()), way, place, threads, options.seconds]
    return subprocess.Popen([sys.executable, "-c", TRAINING, json.dumps(what)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def tell(trainings):
    for training in trainings:
        training.stdin.write("\n")
        training.stdin.flush()


def run(options, way, n):
    before = shmem()
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(cache_place(options, way))
        trainings = []
        for _ in range(n):
            trainings.append(stack.enter_context(start(options, way, place, n)))
            stack.callback(trainings[-1].kill)
        for training in trainings:
            if training.stdout.readline() != "ready\n":
                sys.exit("a training failed")
        tell(trainings)
        results = [json.loads(training.stdout.readline()) for training in trainings]
        added = shmem() - before
        tell(trainings)
        for training in trainings:
            training.wait()
    return {"rate": sum(result["samples"] / result["seconds"] for result in results),
            "pss": sum(result["pss"] for result in results), "shmem": added}


def median(rounds, name):
    return statistics.median(result[name] for result in rounds)


def table(results):
    lines = ["| way | trainings | samples/s, all (range) | PSS, all (MB) | shared memory (MB) |",
             "|---|---:|---:|---:|---:|"]
    for (way, n), rounds in results.items():
        rates = [result["rate"] for result in rounds]
        lines.append(
            f"| {way} | {n} | {statistics.median(rates):,.0f} "
            f"({min(rates):,.0f}-{max(rates):,.0f}) | {median(rounds, 'pss') / 1e6:,.0f} "
            f"| {median(rounds, 'shmem') / 1e6:,.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=pathlib.Path)
    parser.add_argument("--trainings", default="1,8")
    parser.add_argument("--ways", default="preload,cache")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", default="/dev/shm")
    options = parser.parse_args()
    results = {}
    for _ in range(options.rounds):
        for way in options.ways.split(","):
            for n in map(int, options.trainings.split(",")):
                results.setdefault((way, n), []).append(run(options, way, n))
                print(way, n, results[way, n][-1], file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
