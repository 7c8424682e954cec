# SPDX-License-Identifier: Apache-2.0
"""The rows of an episode: numbers of all frames, from the Parquet files of a dataset."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from .. import _check
from .._convert import _arrow
from .._error import InvalidError
from ._dataset import Episode, Feature
from ._place import Place

_DTYPES = {"f32": "float32", "f64": "float64", "i64": "int64"}
TOLERANCE_S = 1e-4  # LeRobot's
_CHECKED = ("index", "episode_index", "timestamp")


class Rows:
    """Reads episodes. Those of one file are to be read one after another: the file and the row
    groups that were used last stay in memory."""

    def __init__(
        self, place: Place, features: Sequence[Feature], starts: dict[str, int], fps: float
    ) -> None:
        """starts: the number of the first frame of each file"""
        self._place = place
        self._features = list(features)
        self._columns = list(dict.fromkeys([*(f.name for f in features), *_CHECKED]))
        self._starts = starts
        self._fps = fps
        self._path = ""
        self._file: Any = None
        self._ends: list[int] = []  # of the row groups
        self._groups: tuple[int, int] = (0, 0)
        self._table: Any = None

    def _open(self, path: str) -> None:
        import pyarrow.parquet

        self._file = self._table = None  # before the next one is read
        self._file = pyarrow.parquet.ParquetFile(self._place.parquet(path), pre_buffer=False)
        metadata = self._file.metadata
        groups = range(metadata.num_row_groups)
        self._ends = list(accumulate(metadata.row_group(i).num_rows for i in groups))
        self._path, self._groups, self._table = path, (0, 0), None
        known = set(self._file.schema_arrow.names)
        for name in self._columns:
            if name not in known:
                raise InvalidError(f"{path}: expected a column {_check.shown(name)}, found none")

    def _slice(self, first: int, length: int) -> Any:
        """A table of some rows of the file."""
        if first < 0 or not self._ends or first + length > self._ends[-1]:
            raise InvalidError(
                f"{self._path}: expected rows {first} to {first + length}, found "
                f"{self._ends[-1] if self._ends else 0} rows"
            )
        groups = (bisect.bisect_right(self._ends, first),
                  bisect.bisect_left(self._ends, first + length) + 1)
        if groups != self._groups:
            self._table = None  # before the next one is read
            self._table = self._file.read_row_groups(range(*groups), columns=self._columns)
            self._groups = groups
        start = self._ends[groups[0] - 1] if groups[0] else 0
        return self._table.slice(first - start, length)

    def read(self, episode: Episode) -> dict[str, Any]:
        """An array for each feature, and "timestamp"; the first dimension counts frames."""
        with _arrow.reading(episode.data):
            if episode.data != self._path:
                self._open(episode.data)
            table = self._slice(episode.first - self._starts[episode.data], episode.length)
            self._check_numbers(table, episode)
            found = {f.name: self._values(table.column(f.name), f) for f in self._features}
            found["timestamp"] = self._values(
                table.column("timestamp"), Feature("timestamp", "f64", ()))
        self._check_times(found["timestamp"], episode)
        return found

    def _check_times(self, times: Any, episode: Episode) -> None:
        """Windows count frames, so each must follow the one before after 1/fps."""
        import numpy as np

        steps = np.diff(times)
        rounding = np.spacing(np.abs(times[1:]).astype(np.float32))  # datasets have 32-bit floats
        wrong = ~(np.abs(steps - 1 / self._fps) <= TOLERANCE_S + rounding)  # also NaN
        if wrong.any():
            i = int(wrong.argmax())
            raise InvalidError(
                f"{self._path}: episode {episode.number}: expected timestamps that are "
                f"1/{self._fps:g} s apart, found {times[i]:.6g} s and {times[i + 1]:.6g} s of "
                f"frames {i} and {i + 1}; correct fps in meta/info.json, or the timestamps"
            )

    def _check_numbers(self, table: Any, episode: Episode) -> None:
        import numpy as np

        index = self._values(table.column("index"), Feature("index", "i64", ()))
        numbers = self._values(table.column("episode_index"), Feature("episode_index", "i64", ()))
        wanted = np.arange(episode.first, episode.first + episode.length)
        if (index != wanted).any() or (numbers != episode.number).any():
            raise InvalidError(
                f"{self._path}: expected frames {episode.first} to "
                f"{episode.first + episode.length - 1} of episode {episode.number}, found others; "
                "the metadata does not belong to this file"
            )

    def _values(self, column: Any, feature: Feature) -> Any:
        """An array of the shape of the feature for each frame."""
        import pyarrow as pa
        import pyarrow.compute as pc

        n = len(column)
        array = column.combine_chunks()
        for dim in feature.shape:
            array = getattr(array, "storage", array)  # of an extension type
            is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
            is_list = is_list or pa.types.is_fixed_size_list(array.type)
            if not is_list or not array.null_count == 0 or not pc.all(
                pc.equal(pc.list_value_length(array), dim)).as_py():
                raise self._wrong(feature, array)
            array = array.flatten()
        kind = array.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (is_number or pa.types.is_boolean(kind)) or array.null_count:
            raise self._wrong(feature, array)
        array = array.cast(pa.type_for_alias(_DTYPES[feature.type]))
        return array.to_numpy(zero_copy_only=False).reshape(n, *feature.shape)

    def _wrong(self, feature: Feature, array: Any) -> InvalidError:
        shape = f" of shape {feature.shape}" if feature.shape else ""
        return InvalidError(
            f"{self._path}: column {_check.shown(feature.name)}: expected numbers{shape} without "
            f"missing values, found {_check.shown(str(array.type))}"
        )
