# SPDX-License-Identifier: Apache-2.0
"""Writes traces of every kind for check_traces.py: local, remote, of clips, of a process that was
killed, and of four ranks merged.

    make_traces.py FOLDER      with the package in PYTHONPATH; `./dev perfetto` runs both
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import net_stage  # noqa: E402
import penstock  # noqa: E402
from penstock import _trace_merge  # noqa: E402
from py_tools import jpeg, write_pack  # noqa: E402
from remote_tools import ADDRESS, make_pack, options  # noqa: E402

PIPELINE = "decode | random_resized_crop 16"
ENDLESS = """
import sys, penstock
with penstock.trace(sys.argv[2]), penstock.Loader(
        sys.argv[1], 8, pipeline="decode | center_crop 16", output="numpy") as loader:
    while True:
        for _ in loader:
            pass
        print(flush=True)
"""


def train(loader):
    for _ in loader:
        with penstock.span("batch_to_device"):
            time.sleep(0.001)
        with penstock.span("run_batch"), penstock.span("forward"):
            time.sleep(0.005)


def trace(file, *place, rank=0, world_size=1, **settings):
    with penstock.trace(file, rank=rank, world_size=world_size), penstock.Loader(
            *place, 8, shuffle=True, output="numpy", threads=2, rank=rank, world_size=world_size,
            **{"pipeline": PIPELINE, **settings}) as loader:
        train(loader)


def make_remote(folder):
    make_pack(penstock, folder / "store" / "packs" / "train.pen", 200)
    with net_stage.S3Server(directory=folder / "store") as server:
        trace(folder / "s3.json.gz", ADDRESS, storage_options=options(server))


def make_clips(folder):
    with penstock.Writer(folder / "c.pen", {"video": "clip"}) as writer:
        for i in range(32):
            writer.add(key=f"c{i}", video=[jpeg(i * 8 + k) for k in range(8)])
    trace(folder / "clips.json.gz", folder / "c.pen", pipeline="decode | clip 4 | center_crop 16")


def make_killed(pack, file):
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, pack, file], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size > 100_000) and time.monotonic() < deadline:
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait(30)


def main():
    folder = pathlib.Path(sys.argv[1])
    write_pack(penstock, folder / "a.pen", 96, image=jpeg).close()
    trace(folder / "local.json", folder / "a.pen")
    make_remote(folder)
    make_clips(folder)
    make_killed(folder / "a.pen", folder / "killed.json")
    ranks = [folder / f"rank{i}.part.json" for i in range(4)]
    for i, file in enumerate(ranks):
        trace(file, folder / "a.pen", rank=i, world_size=4)
    _trace_merge.merge([os.fspath(file) for file in ranks], os.fspath(folder / "ranks.json.gz"))


if __name__ == "__main__":
    main()
