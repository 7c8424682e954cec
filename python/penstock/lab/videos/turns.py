# SPDX-License-Identifier: Apache-2.0
"""One loader of videos on one storage, in a process of its own."""

from __future__ import annotations

import pathlib
from typing import Any

import tomllib

from ..loaders.workers import Worker, python_for
from ..shapes import Place
from ..shapes.store import StorePlace
from . import sets

HERE = pathlib.Path(__file__).resolve().parent
TURN = HERE / "worker" / "turn.py"
START_SECONDS, CHECK_SECONDS = 300, 300


def loaders() -> dict[str, dict[str, Any]]:
    text = (HERE / "loaders.toml").read_text(encoding="utf-8")
    return {name: {"variables": {}, "environment": None, "packages": [], "remote": False,
                   "keeps": False, **spec}
            for name, spec in tomllib.loads(text).items()}


def address(place: Place, of: sets.Set, reads: str) -> str:
    """Of the pack or of the folder of videos."""
    path = of.folder / reads
    if not isinstance(place, StorePlace):
        return str(place.path(path))
    found = place.address(path)
    return found if reads != "videos" else found.replace("s3:/", place.url, 1)


class Reader:
    """Started, and opened for all turns."""

    def __init__(self, loader: str, task: dict[str, Any], place: Place, log: pathlib.Path) -> None:
        spec = loaders()[loader]
        variables = {**spec["variables"], **place.environment}
        log.parent.mkdir(parents=True, exist_ok=True)
        self.worker = Worker(loader, {**spec, "variables": variables}, python_for(spec), log, TURN,
                             place.words)
        self.task = {**task, "keeps": spec["keeps"]}
        self.place = place

    def prepare(self, reference: pathlib.Path) -> dict[str, Any]:
        """Versions, and how much its pixels differ from the reference."""
        versions = self.worker.ask(START_SECONDS, do="ready")["versions"]
        check = {**self.task, "clips": self.task["batch"], "center": True}
        found = self.worker.ask(CHECK_SECONDS, do="check", task=check, file=str(reference))
        self.worker.ask(START_SECONDS, do="open", task=self.task)
        return {"versions": versions, "check": found}

    def turn(self, number: int) -> dict[str, Any]:
        self.place.refresh()
        return self.worker.turn(epoch=number + 1)

    def close(self) -> None:
        self.worker.stop()
