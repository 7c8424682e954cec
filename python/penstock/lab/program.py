# SPDX-License-Identifier: Apache-2.0
"""The program `penstock`, as a process of its own."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
import sys
from typing import Any

from .errors import LabError

PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def command() -> list[str]:
    """$PENSTOCK, or the program inside this package."""
    given = os.environ.get("PENSTOCK")
    return [given] if given else [sys.executable, "-m", "penstock"]


def environment() -> dict[str, str]:
    """With it, a child process imports the same package."""
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def output(*words: str | os.PathLike[str]) -> str:
    """What `penstock WORDS` prints; a LabError with its message if it fails."""
    texts = [os.fspath(word) for word in words]
    done = subprocess.run(
        [*command(), *texts], capture_output=True, text=True, check=False, env=environment()
    )
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise LabError(f"'penstock {' '.join(texts)}' failed: {said}")
    return done.stdout


def output_json(*words: str | os.PathLike[str]) -> Any:
    return json.loads(output(*words))


def child_seconds() -> float:
    """Processor time of all programs that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
