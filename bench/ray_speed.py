#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What packing on Ray costs: `penstock.ray.pack` against one `penstock pack`, with as many threads.

    ray_speed.py [--photos DIR] [--times N] [--nodes N] [--tasks N] [--rounds N]

Packs the photographs under N names each (hard links) with the default mode. Ray has a head, where
the driver is, and 4 nodes on this machine with one CPU each. A task has one thread, so 4 threads
run at once, as many as `penstock pack` has. The cluster is started for each run and has run tasks
before the time is taken; it is stopped while `penstock pack` runs. Time includes planning,
finalising and `sync`. The two sides take turns. A ratio is Ray's time divided by the other's of one
round; the result is their median. Ends with 1 if it is above 1.10, or if a run took less than 60 s.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

from common import places
from pack_speed import link_all, remove
from penstock.lab.loaders import report

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
sys.path.insert(0, str(places.BUILD / "python"))
NEEDED, LEAST_S = 1.10, 60


def plain(options):
    subprocess.run([places.BUILD / "penstock", "pack", options.folder, "-o", options.out,
                    "--threads", str(options.nodes)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def on_ray(options):
    import penstock.ray

    return penstock.ray.pack(options.folder, options.out, tasks=options.tasks, progress=False)


def timed(call, options):
    remove(options.out)
    begin = time.monotonic()
    call(options)
    os.sync()
    return time.monotonic() - begin


def wait_for_workers(options):
    """Every node has run a task, so that no worker is started while the time is taken."""
    import penstock.ray
    import ray

    @ray.remote(scheduling_strategy="SPREAD")
    def sleep():
        time.sleep(2)

    ray.get([sleep.remote() for _ in range(options.nodes)])
    out = options.work / "ray-warm.pen"
    remove(out)
    penstock.ray.pack(options.few, out, tasks=options.nodes, progress=False)
    remove(out)


def timed_on_ray(options):
    import ray_tools

    with ray_tools.cluster(options.nodes):
        wait_for_workers(options)
        return timed(on_ray, options)


def one_round(options, ray_first):
    """Seconds of both."""
    calls = [(lambda: timed(plain, options), 0), (lambda: timed_on_ray(options), 1)]
    found = [0.0, 0.0]
    for call, side in calls[::-1] if ray_first else calls:
        found[side] = call()
    print(f"penstock pack {found[0]:.1f} s, on Ray {found[1]:.1f} s, ratio "
          f"{found[1] / found[0]:.3f}", flush=True)
    return found


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--work", type=pathlib.Path, default=places.WORK)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--tasks", type=int, help="default: as penstock.ray.pack chooses")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not options.photos.is_dir():
        parser.exit(77, f"no photographs at {options.photos}; say where with --photos\n")
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    options.folder, options.few = (options.work / f"ray-{n}" for n in (options.times, 1))
    link_all(options.photos, options.folder, options.times)
    link_all(options.photos, options.few, 1)
    options.out = options.work / "ray.pen"
    return options


def table(options, n, seconds, ratios):
    plain_s, ray_s = (statistics.median(side) for side in zip(*seconds))
    return report.table([
        ["photographs", "`penstock pack`", "`penstock.ray.pack`", "ratio (rounds)", "needed"],
        [f"{n:,}", f"{plain_s:.1f} s, {options.nodes} threads",
         f"{ray_s:.1f} s, {options.nodes} nodes",
         f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})", str(NEEDED)]])


def main():
    options, here = options_of(), places.machine()
    os.environ["PYTHONPATH"] = str(places.BUILD / "python")
    n = sum(1 for _ in options.folder.glob("*/*"))
    print(f"{here['cpu']}, {here['cores']} cores, {n:,} photographs", flush=True)
    seconds = [one_round(options, i % 2 == 1) for i in range(options.rounds)]
    ratios = [b / a for a, b in seconds]
    print(table(options, n, seconds, ratios))
    remove(options.out)
    if min(map(min, seconds)) < LEAST_S:
        print(f"a run took less than {LEAST_S} s; use a larger --times")
        return 1
    return 1 if statistics.median(ratios) > NEEDED else 0


if __name__ == "__main__":
    sys.exit(main())
