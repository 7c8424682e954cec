# SPDX-License-Identifier: Apache-2.0
"""The shaped cases: what is slow, and what the report has to say about it."""

import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable

import shapes

LOAD = pathlib.Path(__file__).with_name("load.py")
CROP = "decode | random_resized_crop 224 | hflip | tensor u8"
FILTER = "decode | resize 224,224 filter=lanczos | tensor u8"
JITTER = "decode | random_crop 224 | color_jitter 0.4 0.4 0.4 0.1 | tensor u8"
LIMIT = 120  # seconds


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    verdict: str  # the bottleneck
    advice: str  # the change that is advised first
    straggler: int | None = None  # a rank
    pack: str = "photos"
    shape: Callable = shapes.nothing
    remote: bool = False
    settings: dict = dataclasses.field(default_factory=dict)  # of the loader
    job: dict = dataclasses.field(default_factory=dict)  # see load.py


# The memory is less than the pack, so that every epoch fetches it again.
REMOTE = {"memory": "64MiB"}

CASES = (
    Case("slow disk", "read", "preload", job={"evict": True, "repeat": 1},
         shape=functools.partial(shapes.bandwidth, mb_per_second=8)),  # 9 s for an epoch
    Case("disk that seeks", "read", "preload", pack="raw",
         shape=functools.partial(shapes.seeks, milliseconds=4)),
    Case("request latency", "fetch", "cache", pack="many", remote=True, settings=REMOTE,
         job={"chaos": "delay=1.0,delay_ms=1000", "repeat": 1}),
    Case("network bandwidth", "fetch", "cache", remote=True, settings=REMOTE,
         shape=functools.partial(shapes.link, mbit_per_second=100)),
    Case("store that throttles", "fetch", "cache", remote=True, settings=REMOTE,
         job={"chaos": "throttle=0.3"}),
    Case("decoding", "decode", "raw-pack"),
    Case("resampling", "resample", "smaller-images", pack="large", settings={"pipeline": FILTER},
         job={"repeat": 64}),
    Case("too few threads", "resample", "threads", pack="raw",
         settings={"pipeline": JITTER, "threads": 1}),
    Case("memory", "memory", "memory", pack="many", remote=True,
         settings={"memory": "27MiB"},
         job={"chaos": "delay=1.0,delay_ms=400", "repeat": 1}),
    Case("training step", "consumer", "consumer", settings={"batch_size": 8},
         job={"step_ms": 100}),
    Case("Python function", "transform", "python-transform", settings={"batch_size": 8},
         job={"transform": 100}),
    Case("slow rank", "fetch", "cache", straggler=1, remote=True, settings=REMOTE,
         job={"chaos": "delay=1.0,delay_ms=1000", "beside": "photos"}),
)


SETTINGS = {"batch_size": 32, "shuffle": True, "pipeline": CROP}


def run(case, folder, seconds, doctor=False):
    """Loads in another process; or `penstock doctor` does. Returns the rate and the report."""
    with case.shape(folder) as (words, place):
        job = {"seconds": seconds, "repeat": 8, "pack": f"{place}/packs/{case.pack}.pen",
               "settings": {**SETTINGS, **case.settings}, **case.job}
        if case.remote:
            job |= {"serve": str(place), "pack": f"packs/{case.pack}.pen"}
        if "beside" in job:
            job["beside"] = f"{place}/packs/{job['beside']}.pen"
        if doctor:
            job["doctor"] = options(job)
        words += [sys.executable, str(LOAD), json.dumps(job)]
        try:
            done = subprocess.run(words, text=True, capture_output=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it takes more than {LIMIT} s") from None
    assert done.returncode == 0, done.stderr[-500:]
    return json.loads(done.stdout)


NAMES = {"batch_size": "--batch", "pipeline": "--pipeline", "threads": "--threads",
         "memory": "--memory"}


def options(job):
    """What `penstock doctor` calls these settings."""
    given = {NAMES[name]: value for name, value in job["settings"].items() if name in NAMES}
    given |= {"--seconds": job["seconds"], "--consumer": job.get("step_ms", 0)}
    return [str(word) for pair in given.items() if pair[1] for word in pair]
