#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare `penstock simulate --pack` with a real job: plan, tasks and finalise in a Ceph gateway.

    ./dev bench simulate packing [--rounds N] [--samples N] [--tasks N] [--latency-ms MS]
                                 [--within 0.15]

The sources are photographs in the store, which HAProxy puts --latency-ms milliseconds away. Tasks
run one after another. The processor times of a sample are measured before each round, by packing
the same files from a local directory; the simulation has their medians. Prints the seconds of both.
Exit code 1: the median of the plan, the tasks or finalise differs by more than --within.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from common import places

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
import net_stage

PENSTOCK = str(places.BUILD / "penstock")
FILES = 100  # distinct photographs


def run(*args, env=None):
    """Seconds, and those of the processors."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([PENSTOCK, *map(str, args)], check=True, env=env, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def name_of(i):
    return f"{i % 16:02d}/{i:09d}.jpg"


def processor_times(files, top, n):
    """Milliseconds of a core that prepares a sample, and of the thread that writes."""
    for i in range(n):
        path = top / "in" / name_of(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[i % FILES])
    seconds, processors = run("pack", top / "in", "-o", top / "a.pen", "--threads", 1)
    shutil.rmtree(top / "in")
    shutil.rmtree(top / "a.pen")
    return 1e3 * seconds / n, 1e3 * max(processors - seconds, 0) / n


def fill(store, files, n):
    client = store.boto3(retries=5, config={"max_pool_connections": 16})
    client.create_bucket(Bucket="simulate")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: client.put_object(Bucket="simulate", Key="in/" + name_of(i),
                                                  Body=files[i % FILES]), range(n)))


def real_job(far, top, number, args):
    env = far.environment(HOME=str(top))
    source, out = "s3://simulate/in", f"s3://simulate/{number}.pen"
    layout = ("--shard-bytes", args.shard_bytes, "--block-samples", args.block_samples)
    plan, _ = run("plan", source, "-o", out, *layout, env=env)
    tasks = sum(run("pack", source, "-o", out, *layout, "--task", f"{i}/{args.tasks}",
                    "--threads", args.threads, env=env)[0] for i in range(args.tasks))
    finalise, _ = run("finalise", out, env=env)
    return {"plan": plan, "tasks": tasks, "finalise": finalise}


def simulate(args, sample_ms, write_ms):
    options = ["--samples", args.samples, "--sample-bytes", args.sample_bytes,
               "--shard-bytes", args.shard_bytes, "--block-samples", args.block_samples,
               "--tasks", args.tasks, "--tasks-per-node", 1, "--threads", args.threads,
               "--nodes", 1, "--key-bytes", len(name_of(0)), "--sample-ms", round(sample_ms, 4),
               "--write-ms", round(write_ms, 4), "--latency-ms", args.latency_ms + args.store_ms,
               "--latency-p99-ms", args.latency_ms + 3 * args.store_ms, "--connect-ms", 1,
               "--connection-mb", 0, "--node-gbit", 0, "--prefix-rate", 0, "--prefix-writes", 0,
               "--failures", 0, "--effort", 1000]
    print("penstock simulate --pack " + " ".join(map(str, options)))
    done = subprocess.run([PENSTOCK, "simulate", "--pack", *map(str, options), "--json"],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def compare(found, rounds, within):
    far = False
    print("| phase | simulated s | measured s (min-max) | ratio |\n|---|---:|---:|---:|")
    for phase in rounds[0]:
        simulated, real = found["time"][phase + "_seconds"], [one[phase] for one in rounds]
        ratio = simulated / statistics.median(real)
        far = far or abs(ratio - 1) > within
        print(f"| {phase} | {simulated:.2f} | {statistics.median(real):.2f} ({min(real):.2f}-"
              f"{max(real):.2f}) | {ratio:.3f} |")
    print(f"limited by {found['speed']['limited_by']}; the model is "
          f"{'further than' if far else 'within'} {within:.0%} {'from' if far else 'of'} the "
          "real run")
    return 1 if far else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--block-samples", type=int, default=32)
    parser.add_argument("--shard-bytes", type=int, default=64 << 20)
    parser.add_argument("--latency-ms", type=int, default=300)
    parser.add_argument("--store-ms", type=float, default=4, help="time of the store itself")
    parser.add_argument("--within", type=float, default=0.15)
    args = parser.parse_args()
    files = [path.read_bytes() for path in places.photo_files(args.photos, FILES)][:FILES]
    if len(files) < FILES:
        parser.error(f"{args.photos}: expected {FILES} photographs, found {len(files)}")
    args.sample_bytes = sum(map(len, files)) // FILES
    with tempfile.TemporaryDirectory(dir=os.environ.get("PENSTOCK_WORK")) as work:
        top = pathlib.Path(work)
        with net_stage.Ceph() as store, net_stage.FarAway(store, args.latency_ms) as far:
            fill(store, files, args.samples)
            times, rounds = [], []
            for number in range(args.rounds):
                times.append(processor_times(files, top, 2000))
                rounds.append(real_job(far, top, number, args))
                print(f"round {number + 1} of {args.rounds}: {rounds[-1]}", file=sys.stderr)
    sample_ms, write_ms = (statistics.median(column) for column in zip(*times))
    return compare(simulate(args, sample_ms, write_ms), rounds, args.within)


if __name__ == "__main__":
    sys.exit(main())
