# SPDX-License-Identifier: Apache-2.0
"""Worker processes from the outside: commands, deadlines, processor time and memory."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from .. import program
from ..errors import Absent
from .environments import WORKER, python_of
from .worker.processes import memory_of, tree

PREPARE_SECONDS, TURN_SECONDS = 3600, 900
SERVE = WORKER / "serve.py"


class MemoryWatch:
    """The highest memory of a tree while the block runs. It costs time: not for what is counted."""

    def __init__(self, pid: int, every: float = 0.05):
        self.pid, self.every, self.peak = pid, every, 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self) -> None:
        ended = False
        while not ended:  # once more at the end: the block may be shorter than a pause
            ended = self.end.wait(self.every)
            self.peak = max(self.peak, sum(memory_of(pid) for pid in tree(self.pid)))

    def __enter__(self) -> MemoryWatch:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join()


def end_session(process: subprocess.Popen[Any]) -> None:
    """Ends a process that leads a session, and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def result_of(answer: dict[str, Any], log: pathlib.Path) -> dict[str, Any]:
    if not answer.pop("ok"):
        raise Absent(f"{answer['error']} (log: {log})")
    return answer


def how_it_ended(code: int) -> str:
    """Of a process that gave no answer."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = ": Linux does this when memory is short" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{hint}"


def ask_once(command: list[Any], task: dict[str, Any], seconds: float, log: pathlib.Path,
             env: dict[str, str] | None = None) -> dict[str, Any]:
    """The answer of a process of its own to one task; what it started ends with it."""
    with open(log, "wb") as file:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=file, env=env, start_new_session=True, text=True)
    try:
        text, _ = child.communicate(json.dumps(task), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Absent(f"no answer in {seconds} s (log: {log})") from None
    finally:
        end_session(child)
    if not text:
        raise Absent(f"{how_it_ended(child.returncode)} (log: {log})")
    return result_of(json.loads(text), log)


def is_here(packages: list[str]) -> bool:
    """Whether all packages are importable in this environment."""
    try:
        return bool(packages) and all(importlib.util.find_spec(name) for name in packages)
    except ImportError:  # nvidia.dali without nvidia
        return False


def python_for(spec: dict[str, Any]) -> pathlib.Path:
    """The interpreter of a loader's environment; of this one, if that has its packages."""
    try:
        if spec["environment"]:
            return python_of(spec["environment"])
    except Absent:
        if not is_here(spec["packages"]):
            raise
    return pathlib.Path(sys.executable)


def variables_of(spec: dict[str, Any], python: pathlib.Path) -> dict[str, str]:
    """Of a worker's process. In another environment it does not see this penstock."""
    variables = program.environment()
    if python != pathlib.Path(sys.executable):
        del variables["PYTHONPATH"]
    return {**variables, **spec["variables"], "PYTHONUNBUFFERED": "1"}


class Worker:
    """One loader's process; with another program than serve.py, that of another kind of module."""

    def __init__(self, name: str, spec: dict[str, Any], python: pathlib.Path, log: pathlib.Path,
                 program: pathlib.Path = SERVE, words: Sequence[str] = ()):
        self.name, self.spec, self.log = name, spec, log
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [*words, python, program, spec["module"]], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=file, env=variables_of(spec, python),
                start_new_session=True)

    def line(self, deadline: float) -> dict[str, Any]:
        stdout = self.process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            raise Absent(f"no answer in time (log: {self.log})")
        line = stdout.readline()
        if not line:
            raise Absent(f"{how_it_ended(self.process.wait())} (log: {self.log})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, seconds: float, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps(command) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is reported below
        return result_of(self.line(time.monotonic() + seconds), self.log)

    def prepare(self, task: dict[str, Any]) -> dict[str, Any]:
        return self.ask(PREPARE_SECONDS, do="prepare", task=task)

    def turn(self, **parameters: Any) -> dict[str, Any]:
        before = tree(self.process.pid)
        answer = self.ask(TURN_SECONDS, do="turn", **parameters)
        after = tree(self.process.pid)
        answer["cpu"] = sum(after.values()) - sum(before.values())
        return answer

    def check(self, reference: pathlib.Path) -> dict[str, Any]:
        try:
            return self.ask(TURN_SECONDS, do="check", reference=str(reference))
        except Absent as why:
            return {"error": str(why)}

    def stop(self) -> None:
        end_session(self.process)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
