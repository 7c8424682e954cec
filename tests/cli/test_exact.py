# SPDX-License-Identifier: Apache-2.0
"""Shell commands with the exact output they must have.

Each tests/cli/*/NAME.commands is run by sh in an empty directory with `penstock` in its path; what
it prints must be NAME.stdout.exact, its messages NAME.stderr.exact (none when there is no such
file), and it must exit 0. With EXACT=write in the environment the files are written instead.
"""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PENSTOCK = pathlib.Path(
    os.environ.get("PENSTOCK_BIN")
    or os.environ.get("PENSTOCK")
    or HERE.parents[1] / "build" / "penstock"
)
SCRIPTS = sorted(HERE.glob("*/*.commands"))


def compare(script, stream, found):
    file = script.with_name(f"{script.stem}.{stream}.exact")
    if os.environ.get("EXACT") == "write":
        if found:
            file.write_bytes(found)
        elif file.exists():
            file.unlink()
        return
    assert found.decode() == (file.read_text() if file.exists() else "")


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{s.parent.name}-{s.stem}" for s in SCRIPTS])
def test_script_prints_exactly(script, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "penstock").symlink_to(PENSTOCK.resolve())
    (tmp_path / "work").mkdir()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-eu", script], cwd=tmp_path / "work", capture_output=True,
                          env={**os.environ, "PATH": path}, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    compare(script, "stdout", done.stdout)
    compare(script, "stderr", done.stderr)
