# SPDX-License-Identifier: Apache-2.0
"""Turns of loaders of clips, each in a process of its own."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import tomllib

from ..loaders.workers import Worker, python_for
from ..shapes.shape import Place

HERE = pathlib.Path(__file__).resolve().parent
TURN = HERE / "worker" / "turn.py"
START_SECONDS, CHECK_SECONDS = 300, 300
# Batches are [N, 3, FRAMES, SIZE, SIZE], every STRIDE-th frame.
FRAMES, STRIDE, SIZE = 18, 2, 84


def loaders() -> dict[str, dict[str, Any]]:
    text = (HERE / "loaders.toml").read_text(encoding="utf-8")
    return {name: {"variables": {}, "environment": None, "packages": [], "complete": False, **spec}
            for name, spec in tomllib.loads(text).items()}


def task(clips: int, batch: int, workers: int, threads: int, *, shuffle: bool = False,
         step: float = 0.0) -> dict[str, Any]:
    """An epoch of the first clips.

    workers, threads  worker processes of a DataLoader; threads of penstock
    step              seconds of a simulated training step for each batch
    """
    return {"clips": clips, "batch": batch, "workers": workers, "threads": threads,
            "shuffle": shuffle, "step": step, "frames": FRAMES, "stride": STRIDE, "size": SIZE,
            "center": False}


@contextlib.contextmanager
def started(loader: str, place: Place, log: pathlib.Path) -> Iterator[tuple[Worker, Any]]:
    """A process that has imported the loader, and the versions of that."""
    spec = loaders()[loader]
    variables = {**spec["variables"], **place.environment}
    log.parent.mkdir(parents=True, exist_ok=True)
    worker = Worker(loader, {**spec, "variables": variables}, python_for(spec), log, TURN,
                    place.words)
    try:
        yield worker, worker.ask(START_SECONDS, do="ready")["versions"]
    finally:
        worker.stop()


def turn(loader: str, asked: dict[str, Any], place: Place, log: pathlib.Path) -> dict[str, Any]:
    """Times of a task, and what the storage counted meanwhile."""
    with started(loader, place, log) as (worker, _):
        place.join(worker.process.pid)
        place.refresh()
        before = place.counts()
        found = worker.turn(task={**asked, "root": str(place.folder)})
        after = place.counts()
    return {**found, **{name: after[name] - before[name] for name in after}}


def _first_batch(asked: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    return {**asked, "root": str(folder), "clips": asked["batch"], "center": True,
            "shuffle": False}


def save_reference(asked: dict[str, Any], folder: pathlib.Path, log: pathlib.Path) -> pathlib.Path:
    """The pixels of the first batch as Pillow decodes them, made once."""
    file = folder / f"reference-{asked['batch']}.npy"
    if not file.exists():
        part = folder / "part.npy"
        with started("jpeg", Place(folder), log) as (worker, _):
            worker.ask(CHECK_SECONDS, do="save", task=_first_batch(asked, folder), file=str(part))
        part.rename(file)
    return file


def check(loader: str, asked: dict[str, Any], folder: pathlib.Path, log: pathlib.Path,
          reference: pathlib.Path | None) -> dict[str, Any]:
    """The versions of a loader, and the difference of its pixels from the reference."""
    with started(loader, Place(folder), log) as (worker, versions):
        if reference is None:
            return {"versions": versions, "check": {}}
        off = worker.ask(CHECK_SECONDS, do="check", task=_first_batch(asked, folder),
                         file=str(reference))
    return {"versions": versions, "check": off}
