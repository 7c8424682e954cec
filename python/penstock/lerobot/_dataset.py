# SPDX-License-Identifier: Apache-2.0
"""The metadata of a LeRobot dataset, version 3: features, episodes and tasks. It is checked here:
a dataset can come from anybody."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _check
from .._convert import _arrow
from .._error import InvalidError, NotFoundError, UnsupportedError
from ._place import Place

INFO = "meta/info.json"
_TASKS = "meta/tasks.parquet"
_EPISODES = "meta/episodes/*/*.parquet"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEOS = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
INFO_BYTES = 64 << 20
_MOST_DIMS = 3  # of a value in one frame
_TYPES = {
    "float16": "f32", "float32": "f32", "float64": "f64", "bool": "i64", "int8": "i64",
    "int16": "i64", "int32": "i64", "int64": "i64", "uint8": "i64", "uint16": "i64",
    "uint32": "i64", "uint64": "i64",
}
_COUNTERS = ("index", "frame_index", "episode_index")  # they follow from the episode
_VARIABLE = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")


@dataclass(frozen=True)
class Feature:
    """A value of every frame."""

    name: str
    type: str  # clip, f32, f64 or i64
    shape: tuple[int, ...]  # of one frame; () for a number


@dataclass(frozen=True)
class Part:
    """An episode in a video file."""

    path: str
    start: float  # seconds


@dataclass(frozen=True)
class Episode:
    number: int
    length: int  # frames
    first: int  # number of its first frame in the dataset
    data: str  # path
    videos: Mapping[str, Part]  # of each camera


@dataclass
class Dataset:
    place: Place
    fps: float = 0
    cameras: list[Feature] = field(default_factory=list)
    numbers: list[Feature] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # features that a pack cannot have
    episodes: list[Episode] = field(default_factory=list)
    tasks: dict[int, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.place.path


def _whole(what: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidError(
            f"{what}: expected an integer from {low} to {high}, found {_check.shown(value)}"
        )
    return value


def _real(what: str, value: object, low: float, high: float) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:  # type: ignore[operator]
        raise InvalidError(
            f"{what}: expected a number from {low:g} to {high:g}, found {_check.shown(value)}"
        )
    return float(value)  # type: ignore[arg-type]


# ---- info.json ----


def _read_info(place: Place) -> dict[str, Any]:
    name = os.path.join(place.path, INFO)
    try:
        data = place.read(name, INFO_BYTES)
    except FileNotFoundError:
        raise NotFoundError(
            f"{name}: no such file; expected a LeRobot dataset, version 3"
        ) from None
    try:
        info = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{name}: expected JSON: {_check.shown(str(error))}") from None
    if not isinstance(info, dict):
        raise InvalidError(f"{name}: expected a JSON object")
    return info


def _check_version(name: str, info: Mapping[str, Any]) -> None:
    version = info.get("codebase_version")
    if not isinstance(version, str) or not re.fullmatch(r"v?3(\.\d+)*", version):
        raise UnsupportedError(
            f"{name}: expected codebase_version v3.0, found {_check.shown(version)}; LeRobot "
            "converts older datasets: lerobot.scripts.convert_dataset_v21_to_v30"
        )


def _shape(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidError(f"{name}: shape: expected a list, found {_check.shown(value)}")
    shape = tuple(_whole(f"{name}: shape", n, 1, 2**31) for n in value)
    return () if shape == (1,) else shape  # as LeRobot stores it


def _add_feature(dataset: Dataset, name: str, feature: object) -> None:
    where = f"{dataset.path}/{INFO}: feature {_check.shown(name)}"
    if not isinstance(feature, dict) or not isinstance(feature.get("dtype"), str):
        raise InvalidError(f"{where}: expected an object with a dtype")
    kind = feature["dtype"]
    if kind == "video":
        dataset.cameras.append(Feature(name, "clip", ()))
        return
    if kind == "image":
        raise UnsupportedError(
            f"{where}: images in Parquet files cannot be read in place; LeRobot's "
            "'lerobot-edit-dataset --operation.type convert_image_to_video' makes videos of them"
        )
    shape = _shape(where, feature.get("shape")) if kind in _TYPES else ()
    if kind not in _TYPES or len(shape) > _MOST_DIMS:
        dataset.left_out.append(name)
    elif name not in _COUNTERS:
        dataset.numbers.append(Feature(name, _TYPES[kind], shape))


def _add_features(dataset: Dataset, info: Mapping[str, Any]) -> None:
    features = info.get("features")
    if not isinstance(features, dict):
        raise InvalidError(f"{dataset.path}/{INFO}: expected an object of features")
    for name, feature in features.items():
        _add_feature(dataset, name, feature)
    if not dataset.cameras:
        raise UnsupportedError(
            f"{dataset.path}: expected at least one feature of dtype video, found none; convert "
            "the Parquet files with 'penstock convert'"
        )


def _fill(where: str, template: object, values: Mapping[str, int | str]) -> str:
    """A path below the dataset, from a template like "data/chunk-{chunk_index:03d}.parquet"."""

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        if found is None:
            raise InvalidError(f"{where}: unknown variable {_check.shown(match[0])}")
        return f"{found:0{match[2]}d}" if match[2] and isinstance(found, int) else str(found)

    if not isinstance(template, str):
        raise InvalidError(f"{where}: expected a template, found {_check.shown(template)}")
    path = _VARIABLE.sub(value, template)
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "\0" in path or "{" in path:
        raise InvalidError(
            f"{where}: expected a path below the dataset, found {_check.shown(path)}"
        )
    return path


# ---- Parquet ----


def _names(place: Place, pattern: str) -> list[str]:
    names = place.names(pattern)
    if not names:
        raise NotFoundError(f"{place.path}/{pattern}: no such file; the dataset is incomplete")
    return names


def _read_columns(place: Place, name: str, *wanted: str | tuple[str, ...]) -> list[list[Any]]:
    """Columns of a file. Of several names in a tuple, the first one that the file has."""
    import pyarrow.parquet

    with _arrow.reading(name):
        file = pyarrow.parquet.ParquetFile(place.parquet(name))
        known = set(file.schema_arrow.names)
        found = []
        for one in wanted:
            of_file = [c for c in (one if isinstance(one, tuple) else (one,)) if c in known]
            if not of_file:
                raise InvalidError(
                    f"{name}: expected a column {_check.shown(one)}, found none"
                )
            found.append(of_file[0])
        table = file.read(columns=found)
        return [table.column(column).to_pylist() for column in found]


def _read_tasks(dataset: Dataset) -> None:
    """Texts by number. The file is an indexed table of pandas."""
    for name in _names(dataset.place, _TASKS):
        columns = _read_columns(dataset.place, name, "task_index", ("task", "__index_level_0__"))
        for number, text in zip(*columns):
            if not isinstance(text, str):
                raise InvalidError(f"{name}: expected texts of tasks, found {_check.shown(text)}")
            dataset.tasks[_whole(f"{name}: task_index", number, 0, 2**62)] = text


def _video(dataset: Dataset, info: Mapping[str, Any], camera: str, where: str,
           row: Mapping[str, Any]) -> Part:
    chunk, file, start = (
        row[f"videos/{camera}/{what}"] for what in ("chunk_index", "file_index", "from_timestamp"))
    values: dict[str, int | str] = {
        "video_key": camera,
        "chunk_index": _whole(f"{where}: chunk_index of {camera}", chunk, 0, 2**31),
        "file_index": _whole(f"{where}: file_index of {camera}", file, 0, 2**31),
    }
    path = _fill(f"{dataset.path}/{INFO}: video_path", info.get("video_path", _VIDEOS), values)
    seconds = _real(f"{where}: from_timestamp of {camera}", start, 0, 1e9)
    return Part(os.path.join(dataset.path, path), seconds)


def _episode(dataset: Dataset, info: Mapping[str, Any], where: str,
             row: Mapping[str, Any]) -> Episode:
    number = _whole(f"{where}: episode_index", row["episode_index"], 0, 2**62)
    at = f"{where}: episode {number}"
    first = _whole(f"{at}: dataset_from_index", row["dataset_from_index"], 0, 2**62)
    length = _whole(f"{at}: length", row["length"], 1, 2**31)
    if row["dataset_to_index"] != first + length:
        raise InvalidError(
            f"{at}: expected dataset_to_index {first + length} for {length} frames from {first} "
            f"on, found {_check.shown(row['dataset_to_index'])}"
        )
    values = {
        "chunk_index": _whole(f"{at}: data/chunk_index", row["data/chunk_index"], 0, 2**31),
        "file_index": _whole(f"{at}: data/file_index", row["data/file_index"], 0, 2**31),
    }
    data = _fill(f"{dataset.path}/{INFO}: data_path", info.get("data_path", _DATA), values)
    videos = {c.name: _video(dataset, info, c.name, at, row) for c in dataset.cameras}
    return Episode(number, length, first, os.path.join(dataset.path, data), videos)


def _read_episodes(dataset: Dataset, info: Mapping[str, Any]) -> None:
    wanted = ["episode_index", "length", "dataset_from_index", "dataset_to_index",
              "data/chunk_index", "data/file_index"]
    for camera in dataset.cameras:
        wanted += [f"videos/{camera.name}/{what}"
                   for what in ("chunk_index", "file_index", "from_timestamp")]
    for name in _names(dataset.place, _EPISODES):
        for values in zip(*_read_columns(dataset.place, name, *wanted)):
            dataset.episodes.append(_episode(dataset, info, name, dict(zip(wanted, values))))
    dataset.episodes.sort(key=lambda episode: episode.number)
    for one, next_one in zip(dataset.episodes, dataset.episodes[1:]):
        if one.number == next_one.number:
            raise InvalidError(f"{dataset.path}: episode {one.number} occurs twice in the metadata")


def read(place: Place) -> Dataset:
    """The checked metadata of the dataset in a folder or at a prefix."""
    info = _read_info(place)
    name = os.path.join(place.path, INFO)
    _check_version(name, info)
    dataset = Dataset(place, _real(f"{name}: fps", info.get("fps"), math.ulp(0.0), 1000))
    _add_features(dataset, info)
    _read_tasks(dataset)
    _read_episodes(dataset, info)
    total = _whole(f"{name}: total_episodes", info.get("total_episodes"), 0, 2**62)
    if len(dataset.episodes) != total or not total:
        raise InvalidError(
            f"{name}: expected {max(total, 1)} episodes in meta/episodes, found "
            f"{len(dataset.episodes)}; the dataset is incomplete"
        )
    return dataset
