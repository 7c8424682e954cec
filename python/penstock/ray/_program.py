# SPDX-License-Identifier: Apache-2.0
"""Runs a command of penstock as a child process, and reads its progress and its result."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _error

BUSY, USAGE = 75, 2
POLL_S = 0.5
STOP_S = 20.0
MESSAGE_BYTES = 8192
OnProgress = Callable[[dict[str, Any]], None]
IsStopped = Callable[[], bool]


class StoppedError(Exception):
    """The program was ended on request."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command has ended."""

    code: int  # negative: the number of the signal that killed it
    result: dict[str, Any]  # what --json prints; with "error" if it failed
    messages: str  # the end of stderr

    def error(self) -> _error.Error:
        """The exception for a command that failed."""
        found = self.result.get("error", {})
        kind = _KINDS.get(found.get("status", ""), _error.Error)
        if self.code == USAGE:
            kind = _error.InvalidError
        if self.code < 0:
            return kind(f"penstock was killed by signal {-self.code}")
        message = found.get("message") or self.messages.removeprefix("penstock: ").strip()
        return kind(
            message or f"penstock ended with exit code {self.code}",
            where=found.get("where", "python"),
            os_errno=found.get("errno", 0),
        )


_NAMES = {
    "INVALID": -1, "NO_MEMORY": -2, "NOT_FOUND": -3, "ACCESS": -4, "IO": -5, "TIMEOUT": -6,
    "FORMAT": -7, "CORRUPT": -8, "DECODE": -9, "UNSUPPORTED": -10, "EXISTS": -11, "BUSY": -12,
    "LIMIT": -13, "CANCELLED": -14, "CLOSED": -15, "CHANGED": -16,
    "DECODE_TIMEOUT": -17,
}
_KINDS = {f"E_{name}": _error.KINDS[status] for name, status in _NAMES.items()}


def status_name(error: Exception) -> str:
    """As in the JSON of the program."""
    status = getattr(error, "status", _error.InvalidError.status)
    return next((f"E_{name}" for name, number in _NAMES.items() if number == status), "E_INVALID")


class _Lines:
    """Splits stderr: lines of JSON are progress, the others are messages."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._call, self._rest, self.messages = on_progress, b"", b""

    def add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"stage"'):
                if self._call:
                    self._call(json.loads(line))
            else:
                self.messages = (self.messages + line + b"\n")[-MESSAGE_BYTES:]

    def end(self) -> str:
        return (self.messages + self._rest).decode("utf-8", "replace")


@contextlib.contextmanager
def _started(words: Sequence[str], cwd: str) -> Iterator[subprocess.Popen[bytes]]:
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child.py")
    process = subprocess.Popen(
        [sys.executable, script, str(os.getpid()), *words],
        cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in a terminal is for the driver
    )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends it if it runs: it then keeps its finished shards, and leaves no temporary files."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _read(process: subprocess.Popen[bytes], lines: _Lines, is_stopped: IsStopped) -> bytes:
    """Both pipes to their ends; returns what was on stdout."""
    out = b""
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            assert pipe
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            if is_stopped():
                raise StoppedError
            for key, _ in selector.select(POLL_S):
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += data
                else:
                    lines.add(data)
    return out


def _never() -> bool:
    return False


def run(
    words: Sequence[str],
    cwd: str,
    on_progress: OnProgress | None = None,
    is_stopped: IsStopped = _never,
) -> Outcome:
    """Runs `penstock WORDS --json`. If it is interrupted or stopped, it ends the program."""
    lines = _Lines(on_progress)
    with _started([*words, "--progress", "json", "--json"], cwd) as process:
        out = _read(process, lines, is_stopped)
        code = process.wait()
    try:
        result = json.loads(out)
    except ValueError:
        result = {}
    return Outcome(code, result, lines.end())


def good(words: Sequence[str], cwd: str, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """The result of a command; raises if it fails."""
    outcome = run(words, cwd, on_progress)
    if outcome.code != 0 or not outcome.result:
        raise outcome.error()
    return outcome.result
