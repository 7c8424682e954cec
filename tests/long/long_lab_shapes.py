# SPDX-License-Identifier: Apache-2.0
"""Measures the simulated storages of penstock.lab: requested against measured, and that nothing is
left behind, also by a run that is killed. Shapes that need root, cgroups, FUSE or a network
namespace are skipped if these are missing."""

import glob
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from _package import BUILD, FULL, Tests, encoded, painted, penstock
from penstock.lab import Absent, shapes
from penstock.lab.shapes import cgroup, undo

TEXTS = ["disk=20MB/s", "seeks=6.8ms", "store=110ms@50MB/s", "memory=100MB", "cold", "warm"]
if FULL:
    TEXTS += ["disk=5MB/s", "disk=100MB/s", "disk=200MB/s", "seeks=2ms", "seeks=20ms",
              "store=20ms@19MB/s", "store=200ms@100MB/s", "memory=1000MB", "memory=4000MB"]
SAMPLES = 64
KILLED = ["disk=20MB/s", "seeks=6.8ms", "memory=600MB", "store=5ms@50MB/s"]

HOLDER = """
import sys, time
from penstock.lab import shapes
with shapes.parse(sys.argv[1]).apply([sys.argv[2]], measure=False) as place:
    print(place.folder, flush=True)
    time.sleep(60)
"""


def leftovers():
    places = [str(cgroup.ROOT / "*" / f"{undo.PREFIX}*"), f"{tempfile.gettempdir()}/{undo.PREFIX}*"]
    names = [name for place in places for name in glob.glob(place)]
    return [name for name in names if undo.is_leftover(os.path.basename(name))]


def check(text, folder):
    """Other programs disturb a measurement; three of them do not all fail by chance."""
    for _ in range(3):
        with shapes.parse(text).apply([folder]) as place:
            found = place.checks
        if all(one.within for one in found):
            return "; ".join(map(str, found))
        print(f"{text}: measured again: {'; '.join(map(str, found))}")
    raise AssertionError("; ".join(map(str, found)))


def read_all(pack):
    pipeline = "decode | random_resized_crop 32 | tensor u8"
    with penstock.Loader(pack, 16, threads=2, pipeline=pipeline, output="numpy") as loader:
        return sum(len(batch[0]) for batch in loader)


def read_shaped(text, pack):
    """A loader reads the pack there, in a process of its own."""
    with shapes.parse(text).apply([pack], measure=False) as place:
        where = place.address(pack) if text.startswith("store") else place.path(pack)
        command = [*place.words, sys.executable, __file__, "read", str(where)]
        process = subprocess.Popen(command, env={**os.environ, **place.environment}, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        place.join(process.pid)
        samples = int(process.communicate("go\n", timeout=60)[0] or 0)
        assert samples == SAMPLES, samples
        return f"{samples} samples, {place.counts()}"


def hold(text, folder, number):
    """A process that applies a shape, and gets a signal."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, text, str(folder)], text=True,
                               stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PYTHONPATH})
    place = process.stdout.readline().strip()
    assert place, "the shape was not applied"
    process.send_signal(number)
    process.wait(20)
    if number == signal.SIGTERM:
        assert process.returncode == 128 + signal.SIGTERM, process.returncode
    return place


def terminate(text, folder):
    hold(text, folder, signal.SIGTERM)
    assert not leftovers(), leftovers()
    return "nothing is left"


def kill(text, folder):
    """The next run removes what a killed one leaves."""
    hold(text, folder, signal.SIGKILL)
    with shapes.parse(text).apply([folder], measure=False):
        pass
    deadline = time.monotonic() + 10
    while leftovers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not leftovers(), leftovers()
    return "nothing is left"


def make_pack(pack):
    rng = np.random.default_rng(1)
    with penstock.Writer(pack, {"image": "image", "label": "i64"}) as writer:
        for number in range(SAMPLES):
            writer.add(image=encoded(painted(rng, 64, 48), "JPEG"), label=number % 4)


PYTHONPATH = os.pathsep.join([str(BUILD / "python"), os.environ.get("PYTHONPATH", "")])


def main():
    tests, skipped = Tests("lab shapes"), 0
    with tempfile.TemporaryDirectory(prefix="penstock-shapes-", dir=BUILD) as name:
        folder = pathlib.Path(name)
        make_pack(folder / "set.pen")
        cases = [(f"{text}", check, text, folder) for text in TEXTS]
        cases += [(f"{text}, read", read_shaped, text, folder / "set.pen") for text in KILLED]
        cases += [(f"{text}, SIGTERM", terminate, text, folder) for text in KILLED]
        cases += [(f"{text}, SIGKILL", kill, text, folder) for text in KILLED]
        for case in cases:
            try:
                with shapes.parse(case[2]).apply([folder], measure=False):
                    pass
            except Absent as why:
                print(f"lab shapes: {case[0]}: skipped: {why}")
                skipped += 1
                continue
            tests.run(*case)
    return tests.end(skipped)


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        sys.stdin.readline()
        print(read_all(sys.argv[2]))
        sys.exit(0)
    sys.exit(main())
