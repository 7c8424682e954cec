# SPDX-License-Identifier: Apache-2.0
"""Python tests whose number of cases is promised: frames of clips against slices of NumPy 10,000
times, 200 restarts, every byte of a pack for the plain reader. The python tests run them with
fewer."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = (
    "test_py_clips.py::test_frames_are_those_of_a_slice",
    "test_py_determinism.py::test_restarts",
    "test_plain_reader.py::test_every_damaged_byte",
    "test_plain_reader.py::test_every_length",
    "test_plain_reader.py::test_wild_values_are_errors_of_the_pack",
)


def main():
    if os.environ.get("PENSTOCK_SCALE") != "full":
        print("0 passed, 0 failed, 1 skipped")  # the python tests have them, sampled
        return 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", *(f"tests/python/{name}" for name in TESTS)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600,
    )
    for line in re.findall(r"(\d[\d,]* (?:clips .*|passed.*))", done.stdout):
        print(f"counts: {line}")
    bad = done.returncode != 0
    if bad:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    print(f"{len(TESTS) - bad} passed, {int(bad)} failed")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
