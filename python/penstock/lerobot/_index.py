# SPDX-License-Identifier: Apache-2.0
"""penstock.lerobot.index: a pack over the videos of a dataset, one sample for each episode."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _check, _remote
from .._error import InvalidError, NotFoundError
from .._writer import Writer
from . import _dataset
from ._place import open_place
from ._rows import Rows

_OWN = {"task": "text", "episode_index": "i64", "length": "i64", "fps": "f64"}
_BLOCK_SAMPLES = 32
_BLOCK_BYTES = 256 << 20  # of the videos of a block, on average


class Indexed(NamedTuple):
    """What penstock.lerobot.index has done so far. The last one is its result.

    episodes  samples written
    frames    their frames
    left_out  features that the pack does not have: texts, and numbers of more than 3 dimensions
    n_episodes
              episodes of the dataset
    """

    episodes: int
    frames: int
    left_out: tuple[str, ...]
    n_episodes: int


def _schema(dataset: _dataset.Dataset) -> dict[str, str]:
    schema = {camera.name: "clip" for camera in dataset.cameras}
    for feature in dataset.numbers:
        dims = ",".join(["*", *map(str, feature.shape)])
        schema[feature.name] = f"{feature.type}[{dims}]"
    for name, kind in _OWN.items():
        if name in schema:
            raise InvalidError(
                f"{dataset.path}: a feature has the name {name!r}, which the pack needs for a "
                "field of its own; rename the feature"
            )
        schema[name] = kind
    return schema


def _files(dataset: _dataset.Dataset) -> dict[str, int]:
    """The size of each video file."""
    sizes: dict[str, int] = {}
    for episode in dataset.episodes:
        for part in episode.videos.values():
            if part.path in sizes:
                continue
            try:
                sizes[part.path] = dataset.place.size(part.path)
            except FileNotFoundError:
                raise NotFoundError(
                    f"{part.path}: no such file; the dataset is incomplete"
                ) from None
    return sizes


def _block_samples(dataset: _dataset.Dataset) -> int:
    each = sum(_files(dataset).values()) // len(dataset.episodes)
    return max(1, min(_BLOCK_SAMPLES, _BLOCK_BYTES // max(each, 1)))


def _task(dataset: _dataset.Dataset, episode: _dataset.Episode, rows: dict[str, Any]) -> str:
    """The text of the task in the first frame."""
    if "task_index" not in rows:
        return ""
    number = int(rows["task_index"][0])
    if number not in dataset.tasks:
        raise InvalidError(
            f"{episode.data}: episode {episode.number}: expected a task_index of "
            f"meta/tasks.parquet, found {number}"
        )
    return dataset.tasks[number]


def _values(dataset: _dataset.Dataset, episode: _dataset.Episode,
            rows: dict[str, Any]) -> dict[str, Any]:
    """A value for each field."""
    seconds = rows["timestamp"].astype("float64")
    values: dict[str, Any] = {
        "task": _task(dataset, episode, rows), "episode_index": episode.number,
        "length": episode.length, "fps": dataset.fps,
    }
    for name, part in episode.videos.items():
        times = ((seconds + part.start) * 1e9).round().astype("int64")
        values[name] = (part.path, times.tolist())
    return values


def index(
    dataset: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    block_samples: int | None = None,
    progress: Callable[[Indexed], object] | None = None,
    wait: float = 0,
    storage_options: _remote.StorageOptions | None = None,
    work: str | os.PathLike[str] | None = None,
) -> Indexed:
    """Write a pack over a LeRobot dataset (v3). Each sample is an episode. The videos stay in the
    files of the dataset, which must not change.

    dataset        the folder of the dataset, or its s3:// URL
    out            the pack to write, in a directory, or at an s3:// URL if the dataset is at one
    block_samples  episodes per block; None: chosen by the size of the videos
    progress       a function that is called after each episode
    wait           seconds to wait if another process writes the same pack
    storage_options
                   for s3:// URLs, as in penstock.open
    work           if out is an s3:// URL: a local directory for temporary files

    Objects are read once. One video of each camera at a time is copied to a temporary file.

    The pack has a clip for each camera, the numbers of each frame as ragged fields ("f32[*,6]"),
    and the fields task, episode_index, length (frames) and fps.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: expected a function, found {_check.shown(progress)}")
    place = open_place(_check.path(dataset, "dataset"), storage_options)
    found = _dataset.read(place)
    schema = _schema(found)
    k = _block_samples(found) if block_samples is None else block_samples
    starts: dict[str, int] = {}
    for episode in found.episodes:
        starts[episode.data] = min(starts.get(episode.data, episode.first), episode.first)
    rows = Rows(place, found.numbers, starts, found.fps)
    done = Indexed(0, 0, tuple(found.left_out), len(found.episodes))
    with Writer(out, schema, in_place=True, block_samples=k, wait=wait, work=work,
                storage_options=storage_options) as writer:
        for episode in found.episodes:
            numbers = rows.read(episode)
            values = _values(found, episode, numbers)
            for feature in found.numbers:
                values[feature.name] = numbers[feature.name]
            writer.add(f"episode_{episode.number:06d}", **values)
            done = done._replace(episodes=done.episodes + 1, frames=done.frames + episode.length)
            if progress is not None:
                progress(done)
    return done
