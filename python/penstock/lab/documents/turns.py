# SPDX-License-Identifier: Apache-2.0
"""One turn of a loader on a simulated storage."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from .. import program
from ..errors import Absent, LabError
from ..loaders.workers import end_session
from ..shapes.reader import line_of
from ..shapes.shape import Place

START_SECONDS, TURN_SECONDS = 120.0, 900.0


def _failed(error: LabError, log: Any) -> Absent:
    log.seek(0)
    lines = log.read().strip().splitlines()
    return Absent(f"{error}: {lines[-1]}" if lines else str(error))


def turn(kind: str, task: dict[str, Any], place: Place) -> dict[str, Any]:
    """The epochs of a task, and what the storage counted meanwhile."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*place.words, sys.executable, "-m", "penstock.lab.documents.worker", kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**program.environment(), **place.environment}, start_new_session=True,
        )
        assert process.stdin
        try:
            line_of(process, START_SECONDS, "the loader's process")
            place.join(process.pid)
            place.refresh()
            before = place.counts()
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            epochs = json.loads(line_of(process, TURN_SECONDS, "the loader's process"))
            after = place.counts()
        except LabError as error:
            raise _failed(error, log) from None
        finally:
            end_session(process)
            process.communicate()
    return {"epochs": epochs, "counts": {name: after[name] - before[name] for name in after}}
