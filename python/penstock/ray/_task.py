# SPDX-License-Identifier: Apache-2.0
"""What runs on the nodes: one task of a pack, and the actor that collects the progress."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import socket
import time
from typing import Any

from .. import _core, _error
from . import _program

PLAN_S = 60.0  # until a plan is visible on all clients of a network file system
STOP_POLL_S = 1.0
ANNOUNCE_S = 10.0  # without the actor there is no progress, but a pack


class LostError(Exception):
    """A failure that may not happen again, or not on another node. Ray runs the task again."""


# Network, disk and memory of a node, and a node that is shut down.
MAY_PASS = (
    _error.ReadWriteError,
    _error.TimeoutError,
    _error.NoMemoryError,
    _error.CancelledError,
)


@dataclasses.dataclass(frozen=True)
class Spec:
    """What all tasks of a pack have in common."""

    words: tuple[str, ...]  # sources and options of `penstock pack`
    out: str
    n_tasks: int
    wait_s: int
    cwd: str
    version: str

    def command(self, task: int) -> list[str]:
        task_words = ("--task", f"{task}/{self.n_tasks}", "--wait", str(self.wait_s))
        return ["pack", *self.words, "-o", self.out, *task_words]

    def problem(self) -> str | None:
        """Why this node cannot run tasks; None if it can."""
        if self.version != _core.version:
            return f"it has penstock {_core.version}, and the driver has {self.version}"
        if is_remote(self.out):
            return None
        plan = os.path.join(self.out, ".work", "plan")
        manifest = os.path.join(self.out, "manifest")  # published: the program reports that
        deadline = time.monotonic() + PLAN_S
        while not os.path.exists(plan) and not os.path.exists(manifest):
            if time.monotonic() > deadline:
                return (
                    f"it has no {plan}; the pack has to be in a directory that all nodes share, "
                    "or at an s3:// URL"
                )
            time.sleep(0.5)
        return None


def is_remote(name: str) -> bool:
    return "://" in name


class Board:
    """An actor: the latest progress of every task, and whether the tasks have to stop."""

    def __init__(self) -> None:
        self._stopped = False
        self._attempts: dict[int, str] = {}
        self._latest: dict[int, dict[str, Any]] = {}
        self._starts = 0

    def start(self, task: int, attempt: str) -> None:
        self._starts += 1
        self._attempts[task] = attempt

    def report(self, task: int, attempt: str, progress: dict[str, Any]) -> None:
        """A worker that Ray has taken for dead may still report: only the last attempt counts."""
        if self._attempts.get(task) == attempt:
            self._latest[task] = {**progress, "attempt": attempt}

    def stop(self) -> None:
        self._stopped = True

    def is_stopped(self) -> bool:
        return self._stopped

    def read(self) -> tuple[int, dict[int, dict[str, Any]]]:
        """How many attempts were started, and the progress of the tasks."""
        return self._starts, self._latest


def _announce(task: int, board: Any) -> str:
    """Waits for the answer, so that an attempt that is killed later was counted."""
    import ray

    attempt = secrets.token_hex(8)
    ray.wait([board.start.remote(task, attempt)], timeout=ANNOUNCE_S)
    return attempt


class _Stop:
    """Asks the actor whether to stop. Never waits, and has one question open at a time."""

    def __init__(self, board: Any) -> None:
        self._board, self._asked, self._next = board, board.is_stopped.remote(), 0.0

    def __call__(self) -> bool:
        import ray

        if time.monotonic() < self._next or not ray.wait([self._asked], timeout=0)[0]:
            return False
        self._next = time.monotonic() + STOP_POLL_S
        with contextlib.suppress(ray.exceptions.RayError):  # the actor is gone: go on packing
            if ray.get(self._asked):
                return True
        self._asked = self._board.is_stopped.remote()
        return False


def run(spec: Spec, task: int, board: Any) -> dict[str, Any]:
    """Runs a task. Returns its result, or {"error": exception} if another attempt is useless."""
    attempt = _announce(task, board)
    is_stopped = _Stop(board)
    problem = spec.problem()
    if problem:
        return {"error": _error.InvalidError(f"node {socket.gethostname()}: {problem}")}
    cwd = spec.cwd if os.path.isdir(spec.cwd) else "/"
    try:
        outcome = _program.run(
            spec.command(task), cwd,
            lambda now: board.report.remote(task, attempt, now), is_stopped,
        )
    except _program.StoppedError:
        return {"error": _error.CancelledError(f"task {task} was stopped")}
    if outcome.code == 0 and outcome.result:
        return outcome.result
    error = outcome.error()
    if outcome.code < 0 or isinstance(error, MAY_PASS):
        raise LostError(f"node {socket.gethostname()}: {error}")
    return {"error": error}
