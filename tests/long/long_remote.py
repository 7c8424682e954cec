# SPDX-License-Identifier: Apache-2.0
"""Packs in an object store at full counts: an epoch of 50,000 records under FoundationDB's rates of
faults equals the one from the disk, and 64 processes start at once. The tests are those of
tests/python/test_py_remote.py, where CI runs them with fewer."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ("test_chaos_changes_nothing", "test_many_processes_start_at_once")


def main():
    if os.environ.get("PENSTOCK_SCALE") != "full":
        print("0 passed, 0 failed, 1 skipped")  # the python tests have them, sampled
        return 0
    file = ROOT / "tests" / "python" / "test_py_remote.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", *(f"{file}::{name}" for name in TESTS)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600,
    )
    for line in re.findall(r"^\.?(\d+ (?:records|processes).*)$", done.stdout, re.M):
        print(f"remote: {line}")
    bad = done.returncode != 0
    if bad:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    print(f"{len(TESTS) - bad} passed, {int(bad)} failed")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
