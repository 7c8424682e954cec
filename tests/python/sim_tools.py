# SPDX-License-Identifier: Apache-2.0
"""Running the simulator of this tree (sim/)."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIMULATOR = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build") / "sim/penstock-sim"


def run(*arguments):
    # The sanitizer's library that Python needs is in the way of a program that has its own.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run([SIMULATOR, *arguments], env=env, timeout=100, capture_output=True,
                          text=True, check=False)


def simulated(*arguments, **keys):
    """What it prints for these words, and these keys with their values."""
    done = run(*arguments, *(f"{key}={value}" for key, value in keys.items()))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def refused(*arguments, code):
    """The message; there is one line, and no result."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert done.stderr.startswith("penstock-sim: ") and done.stderr.count("\n") == 1
    return done.stderr
