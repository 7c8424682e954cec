# SPDX-License-Identifier: Apache-2.0
"""The same epoch from everywhere, at full counts: from a disk, from a scripted store and from Ceph
behind HAProxy, with 5 of 100 requests answered 503, with caches, preloaded, and resumed with other
numbers of ranks. The tests are those of tests/python/test_remote_same.py, where CI runs them with
fewer samples."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    if os.environ.get("PENSTOCK_SCALE") != "full":
        print("0 passed, 0 failed, 1 skipped")  # the python tests have them, sampled
        return 0
    file = ROOT / "tests" / "python" / "test_remote_same.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=7200,
    )
    for line in re.findall(r"^\.?(\d+ (?:epochs|requests).*)$", done.stdout, re.M):
        print(f"far same: {line}")
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    total = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout.splitlines()[-1])
    count = {what: int(n) for n, what in total}
    bad = count.get("failed", 0) + count.get("error", 0) or int(done.returncode != 0)
    print(f"{count.get('passed', 0)} passed, {bad} failed, {count.get('skipped', 0)} skipped")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
