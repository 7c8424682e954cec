# SPDX-License-Identifier: Apache-2.0
"""Charts: drawn by chart.py, in an environment of its own."""

import json
import subprocess

from compare import environments, places


def draw(data, path):
    try:
        python = environments.python_of("chart")
    except environments.Absent as why:
        print(f"no chart: {why}", flush=True)
        return
    script = places.BENCH / "compare" / "chart.py"
    subprocess.run([python, script, path], input=json.dumps(data), text=True, check=True)
    print(f"chart: {path}", flush=True)
