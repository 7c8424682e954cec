# SPDX-License-Identifier: Apache-2.0
"""What the long tests of the program share: running it, its inputs, and comparing directories."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")
BIN = os.environ.get("PENSTOCK_BIN") or os.environ.get("PENSTOCK") or str(BUILD / "penstock")
FULL = os.environ.get("PENSTOCK_SCALE") == "full"
TIME_LIMIT = 60
SHOWN = 8


def scaled(full, sample):
    return full if FULL else sample


def scratch():
    """A directory in memory where there is such a file system; removed at the end."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="penstock-long-", dir=where)


def run(*args, env=None, limit=TIME_LIMIT):
    """The program's (exit code, standard error); -9 and "hangs" when it takes too long."""
    try:
        done = subprocess.run(
            [BIN, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, env=env,
            timeout=limit, check=False,
        )
    except subprocess.TimeoutExpired:
        return -9, "hangs"
    return done.returncode, done.stderr.decode("utf-8", "replace")


def must(*args):
    code, text = run(*args)
    if code != 0:
        sys.exit(f"cannot go on: penstock {' '.join(map(str, args))}: {text}")


def make_inputs(kind, path, first, n):
    subprocess.run([BUILD / "tests/long/make_inputs", kind, path, str(first), str(n)], check=True)


def tree(top):
    """Every file's bytes, and None for a directory, by path."""
    top = pathlib.Path(top)
    if not top.exists():
        return None
    paths = sorted(top.rglob("*"))
    return {str(p.relative_to(top)): None if p.is_dir() else p.read_bytes() for p in paths}


def difference(expected, found):
    """The first path that differs, or None."""
    for path in sorted(expected.keys() | found.keys()):
        if path not in expected:
            return f"{path} is left over"
        if path not in found:
            return f"{path} is missing"
        if expected[path] != found[path]:
            return f"{path} differs"
    return None


class Sweep:
    """Many small cases counted as one test."""

    results = []

    def __init__(self, name):
        self.name, self.n, self.bad = name, 0, 0

    def complain(self, text):
        self.bad += 1
        if self.bad <= SHOWN:
            print(f"  {self.name}: {text}", flush=True)

    def end(self, text):
        print(f"{self.name}: {text}, {self.bad} complaints", flush=True)
        Sweep.results.append(self.bad == 0)

    @staticmethod
    def total():
        passed = sum(Sweep.results)
        failed = len(Sweep.results) - passed
        print(f"{passed} passed, {failed} failed")
        return 1 if failed or not passed else 0
