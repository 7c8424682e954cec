# SPDX-License-Identifier: Apache-2.0
"""Undo what shapes change, also after SIGTERM. The names of cgroups and folders tell who made them,
so that the next run removes the leftovers of a killed one."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

PREFIX = "penstock-lab-"
SECONDS = 10.0  # the longest wait for anything to end

_numbers = itertools.count()


def _started(pid: int) -> str | None:
    """When a process was started, in clock ticks; None if it does not exist."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]


def new_name() -> str:
    pid = os.getpid()
    return f"{PREFIX}{pid}-{_started(pid)}-{next(_numbers)}"


def is_leftover(name: str) -> bool:
    """Whether the process that made it is gone."""
    parts = name.removeprefix(PREFIX).split("-")
    if not name.startswith(PREFIX) or len(parts) != 3 or not all(map(str.isdecimal, parts)):
        return False
    return _started(int(parts[0])) != parts[1]


def until(condition: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Wait until a condition holds; False if it did not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def unmount(folder: pathlib.Path) -> None:
    """Also a mount whose file system process is gone."""
    for command in (["umount", "-l"], ["fusermount3", "-u", "-z"]):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                [*command, str(folder)], check=False, capture_output=True, timeout=SECONDS
            )
            if done.returncode == 0:
                return


def is_mounted(folder: pathlib.Path) -> bool:
    return f" {folder} " in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8")


def remove_folder(folder: pathlib.Path) -> None:
    """A folder of temporary_folder(), and what is mounted on it."""
    if is_mounted(folder):
        unmount(folder)
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


@contextlib.contextmanager
def temporary_folder(where: str | None = None) -> Iterator[pathlib.Path]:
    """A folder for files and mounts, removed afterwards."""
    folder = pathlib.Path(where or tempfile.gettempdir()) / new_name()
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_leftover_folders(where: str | None = None) -> None:
    for folder in pathlib.Path(where or tempfile.gettempdir()).glob(PREFIX + "*"):
        if is_leftover(folder.name):
            remove_folder(folder)


@contextlib.contextmanager
def on_sigterm() -> Iterator[None]:
    """SIGTERM raises SystemExit in here, so that everything is undone. A second one is ignored."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
