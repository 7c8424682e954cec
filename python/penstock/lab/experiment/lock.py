# SPDX-License-Identifier: Apache-2.0
"""Locks on folders that are kept for later runs: one run at a time writes such a folder."""

from __future__ import annotations

import fcntl
import os
import pathlib

from ..errors import LabError

_held: dict[pathlib.Path, int] = {}


def lock(folder: pathlib.Path) -> None:
    """Make the folder, and keep other processes away from it until this one ends. The lock is on a
    file beside the folder, because the size of folders is measured."""
    folder = folder.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder in _held:
            return
        file = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LabError(f"cannot lock folder '{folder}': {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(file, 20).decode().strip()
        os.close(file)
        raise LabError(f"'{folder}' is in use: another penstock-lab (process {other}) writes it. "
                       "Wait until it ends, or choose another folder with --work") from None
    os.ftruncate(file, 0)
    os.write(file, b"%d\n" % os.getpid())
    _held[folder] = file
