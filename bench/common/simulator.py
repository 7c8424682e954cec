# SPDX-License-Identifier: Apache-2.0
"""Runs the simulator of this tree (sim/): its arguments are words, KEY=VALUE each."""

import json
import subprocess

from common import places

PROGRAM = places.BUILD / "sim" / "penstock-sim"


def words(**keys):
    return [f"{key}={value}" for key, value in keys.items()]


def run(arguments):
    return subprocess.run([str(PROGRAM), *arguments], check=False, capture_output=True, text=True)


def simulate(arguments):
    done = run(arguments)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)
