# SPDX-License-Identifier: Apache-2.0
"""One loader, or the program, in a process of its own where something may be slow. It prints the
rate and the report as JSON.

    python load.py JOB        a JSON object:

pack        its path; with `serve`, its path in that folder
settings    of penstock.Loader, with batch_size
open        of penstock.open: cache, preload
seconds     how long to load
repeat      how often an epoch has each sample (1)
step_ms     the time of a training step (0)
transform   CPU time of a Python function for each batch, in milliseconds (0)
evict       drop the pack from the page cache first (false)
serve       a folder, to be served by S3 from this process
chaos       the faults of that server: tests/net/s3_chaos.py
beside      the path of a pack for a second loader: it is rank 0, and the first one rank 1
doctor      options of 'penstock doctor', which then runs in place of a loader
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or HERE.parents[1] / "build")
sys.path[:0] = [str(BUILD / "python"), str(HERE.parent / "python")]

import penstock  # noqa: E402

LIMIT = 100  # seconds


def evict(path):
    for file in pathlib.Path(path).rglob("*"):
        if file.is_file():
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def busy(milliseconds):
    """A transform that holds the interpreter lock."""
    def transform(batch):
        end = time.thread_time() + milliseconds / 1000
        while time.thread_time() < end:
            pass
        return batch
    return transform


def serve(job, stack):
    import net_stage

    return stack.enter_context(net_stage.S3Server(directory=job["serve"]))


def open_pack(job, stack):
    more = job.get("open", {})
    if not job.get("serve"):
        return penstock.open(job["pack"], **more)
    import remote_tools

    server = serve(job, stack)
    more["storage_options"] = remote_tools.options(server)
    pack = penstock.open(f"s3://{job['pack']}", **more)
    server.control(chaos=job.get("chaos", ""))
    return pack


def open_loaders(job, stack):
    settings = {"output": "numpy", **job["settings"]}
    if job.get("transform"):
        settings["transform"] = busy(job["transform"])
    pack = open_pack(job, stack)
    settings["subset"] = list(range(len(pack))) * job.get("repeat", 1)
    if job.get("beside"):
        settings |= {"world_size": 2, "rank": 0}
        yield stack.enter_context(penstock.Loader(job["beside"], **settings))
        settings["rank"] = 1
    yield stack.enter_context(penstock.Loader(pack, **settings))


def sizes(loader):
    """Of its batches, which are released at once."""
    while True:
        yield from (len(batch[0]) for batch in loader)


def load(loaders, job):
    """Samples per second of the last loader. The wait for the first batch counts: the samples that
    arrive with it come at once. Ranks take their batches in turns, as they do in a training step.
    """
    runs = [sizes(loader) for loader in loaders]
    begin, taken = time.monotonic(), 0
    while not taken or time.monotonic() - begin < job["seconds"]:
        taken += [next(run) for run in runs][-1]
        time.sleep(job.get("step_ms", 0) / 1000)
    return taken / (time.monotonic() - begin)


def run_loaders(job, stack):
    loaders = list(open_loaders(job, stack))
    rate = load(loaders, job)
    stats = [loader.stats() for loader in loaders]
    report = penstock.merge_stats(stats) | {"text": loaders[-1].report(stats)}
    return {"rate": rate, "report": report}


def run_doctor(job, stack):
    pack, env = job["pack"], None
    if job.get("serve"):
        server = serve(job, stack)
        server.control(chaos=job.get("chaos", ""))
        pack, env = f"s3://{pack}", server.environment()
    done = subprocess.run([BUILD / "penstock", "doctor", pack, "--json", *job["doctor"]], env=env,
                          capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    return {"rate": report["samples_per_second"], "report": report}


def main():
    job = json.loads(sys.argv[1])
    if job.get("evict"):
        evict(job["pack"])
    with contextlib.ExitStack() as stack:
        print(json.dumps((run_doctor if "doctor" in job else run_loaders)(job, stack)))


if __name__ == "__main__":
    main()
