# SPDX-License-Identifier: Apache-2.0
"""A pack that another process is writing: exit code 75, and --wait."""

import contextlib
import fcntl
import os
import signal
import subprocess

import pytest
from cli_tools import PENSTOCK, good, make_folder, run

SMALL = ("--block-samples", "2", "--shard-bytes", "1")
WAITING = b"another process is writing here; waiting up to 600 s for it to end"


@contextlib.contextmanager
def locked(path):
    """As another process holds it; the test has no other process that has to be in time."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "in")


@pytest.fixture
def out(tmp_path, folder):
    """A pack whose tasks are complete, but for the last."""
    path = tmp_path / "a.pen"
    good("plan", folder, "-o", path, *SMALL)
    good("pack", folder, "-o", path, *SMALL, "--task", "0/2")
    return path


def task(folder, out, i):
    return ("pack", folder, "-o", out, *SMALL, "--task", f"{i}/2")


def test_busy_has_an_exit_code(tmp_path, folder, out):
    def check(*command):
        result = run(*command, "--json")
        assert result.code == 75, result.err
        assert result.json()["error"]["status"] == "E_BUSY"
        waited = "--wait" in command
        assert ("waiting up to 1 s" in result.err) == waited
        assert ("after waiting for 1 s" in result.err) == waited

    fresh = tmp_path / "fresh.pen"
    fresh.mkdir()
    with locked(fresh):
        check("pack", folder, "-o", fresh)
    with locked(out):
        check(*task(folder, out, 1))
        check("finalise", out)
        check("finalise", out, "--wait", "1")
    with locked(out / ".work" / "task-0-of-2"):
        check(*task(folder, out, 0))
    good(*task(folder, out, 1))
    good("finalise", out)


def start(*command):
    """Returns when it waits."""
    process = subprocess.Popen([PENSTOCK, *map(str, command), "--wait", "600"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    line = process.stderr.readline()
    assert WAITING in line, line
    return process


def ends(process):
    code = process.wait(600)
    process.stderr.close()
    return code


def test_waiting_ends_with_the_other_process(folder, out):
    with locked(out):
        process = start(*task(folder, out, 1))
    assert ends(process) == 0
    with locked(out):
        process = start("finalise", out)
    assert ends(process) == 0
    good("verify", out)


def test_waiting_can_be_interrupted(folder, out):
    with locked(out):
        for command in (task(folder, out, 1), ("finalise", out)):
            process = start(*command)
            process.send_signal(signal.SIGINT)
            assert ends(process) == 130
