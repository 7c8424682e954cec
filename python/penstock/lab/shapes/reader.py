# SPDX-License-Identifier: Apache-2.0
"""Runs probe.py inside of a group."""

from __future__ import annotations

import contextlib
import pathlib
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator

from ..errors import LabError
from . import undo

PROGRAM = pathlib.Path(__file__).with_name("probe.py")


def line_of(process: subprocess.Popen[str], seconds: float, what: str) -> str:
    """Its next line; a LabError if none comes within the time."""
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            raise LabError(f"{what} did not answer within {seconds:.0f} s")
    line = process.stdout.readline()
    if not line:
        raise LabError(f"{what} ended with code {process.wait(undo.SECONDS)}")
    return line


@contextlib.contextmanager
def read_rate(
    file: pathlib.Path, join: Callable[[int], None], seconds: float
) -> Iterator[float]:
    """Bytes per second at which a process that has joined reads a file; it lives until the end."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", str(PROGRAM), str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert process.stdin
        join(process.pid)
        process.stdin.write("read\n")
        process.stdin.flush()
        yield float(line_of(process, seconds, "the probe of the simulated disk"))
    finally:
        process.kill()
        process.communicate()
