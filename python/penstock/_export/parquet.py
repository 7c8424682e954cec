# SPDX-License-Identifier: Apache-2.0
"""Parquet files for pyarrow and Hugging Face `datasets`, which finds its features in them."""

from __future__ import annotations

import itertools
import json
from typing import Any, BinaryIO

from .._convert import _columns
from .._error import InvalidError
from .._pack import Field, Pack, shape_of
from ._folder import Folder

_GROUP_BYTES, _GROUP_ROWS = 32 << 20, 1 << 16  # at most in a row group, which is in memory
_ROW_BYTES = 1 << 30
_NUMBERS = {"i64": "int64", "f32": "float32", "f64": "float64"}


def _key_name(pack: Pack) -> str:
    return "__key__" if "key" in pack.schema else "key"


def _type(field: Field) -> Any:
    import pyarrow as pa

    image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    plain = {"image": image, "clip": pa.list_(image), "bytes": pa.binary(), "text": pa.string(),
             "json": pa.string()}  # fmt: skip
    if field.type in plain:
        return plain[field.type]
    kind = getattr(pa, _NUMBERS[field.type])()
    for n in reversed(field.shape):
        kind = pa.list_(kind, -1 if n is None else n)
    return kind


def _feature(field: Field, classes: list[str]) -> dict[str, Any]:
    """The feature of `datasets`."""
    if field.type == "image":
        return {"_type": "Image"}
    if field.type == "clip":
        return {"feature": {"_type": "Image"}, "_type": "Sequence"}
    if classes:
        return {"names": classes, "_type": "ClassLabel"}
    names = {"bytes": "binary", "text": "string", "json": "string", **_NUMBERS}
    feature: dict[str, Any] = {"dtype": names[field.type], "_type": "Value"}
    for n in reversed(field.shape):
        length = {} if n is None else {"length": n}
        feature = {"feature": feature, **length, "_type": "Sequence"}
    return feature


def _schema(pack: Pack) -> Any:
    import pyarrow as pa

    key = _key_name(pack)
    fields = [pa.field(key, pa.string()), *(pa.field(f.name, _type(f)) for f in pack.fields)]
    features = {key: {"dtype": "string", "_type": "Value"}}
    for field in pack.fields:
        classes = pack.classes if field.name == pack.class_field else []
        features[field.name] = _feature(field, classes)
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


def _images(contents: list[bytes | None], kind: Any) -> Any:
    import pyarrow as pa

    parts = [pa.array(contents, pa.binary()), pa.nulls(len(contents), pa.string())]
    mask = pa.array([content is None for content in contents], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)


def _clips(clips: list[list[bytes]], kind: Any) -> Any:
    import pyarrow as pa

    offsets = [0]
    for clip in clips:
        offsets.append(offsets[-1] + len(clip))
    frames: list[bytes | None] = [frame for clip in clips for frame in clip]
    images = _images(frames, kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), images)


def _numbers(field: Field, values: list[bytes | None]) -> Any:
    import pyarrow as pa

    data = b"".join(value or b"" for value in values)
    kind = getattr(pa, _NUMBERS[field.type])()
    array = pa.Array.from_buffers(
        kind, len(data) * 8 // kind.bit_width, [None, pa.py_buffer(data)]
    )
    for n in reversed(field.shape):
        if n is not None:
            array = pa.FixedSizeListArray.from_arrays(array, n)
    return _rows(field, values, array) if field.ragged else array


def _rows(field: Field, values: list[bytes | None], rows: Any) -> Any:
    """The rows of a ragged field as lists."""
    import pyarrow as pa

    ends = itertools.accumulate(0 if v is None else shape_of(field, v)[0] for v in values)
    offsets = pa.array([0, *ends], pa.int32())
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, rows, mask=missing)


class Tables:
    def __init__(self, pack: Pack, folder: Folder, shard_bytes: int) -> None:
        _columns.need("pyarrow.parquet", folder.path, "writing Parquet")
        self._pack, self._core, self._folder = pack, pack._core, folder
        self._limit = shard_bytes
        self._group_limit = min(_GROUP_BYTES, shard_bytes)
        self._schema = _schema(pack)
        self._rows: list[list[Any]] = []
        self.n_bytes = self._group_size = self._number = 0
        self._file: BinaryIO | None = None
        self._writer: Any = None

    def add(self, number: int) -> None:
        row: list[Any] = [_utf8("key", self._core.key(number))]
        row += (self._value(number, i, field) for i, field in enumerate(self._pack.fields))
        n_bytes = sum(map(_size, row))
        if n_bytes > _ROW_BYTES:
            raise InvalidError(f"expected at most 1 GiB in a row, found {n_bytes} bytes")
        self._rows.append(row)
        self.n_bytes += n_bytes
        self._group_size += n_bytes
        if self._group_size >= self._group_limit or len(self._rows) == _GROUP_ROWS:
            self._write_group()

    def _value(self, number: int, i: int, field: Field) -> Any:
        """The bytes of a value, a text, or the frames of a clip; None: missing."""
        if field.type == "clip":
            frames = range(self._core.frame_count(number, i))
            return [self._core.extract(number, i, frame)[0] for frame in frames]
        if self._core.missing(number, i):
            return None
        if field.type == "image":
            return self._core.extract(number, i, 0)[0]
        data = self._core.read(number, i)
        if field.type in ("text", "json"):
            return _utf8(f"field {field.name!r}", data)
        if field.name == self._pack.class_field:
            self._check_label(int.from_bytes(data, "little", signed=True))
        return data

    def _check_label(self, label: int) -> None:
        """`datasets` refuses a table with other class numbers."""
        n = len(self._pack.classes)
        if n and not -1 <= label < n:
            raise InvalidError(f"expected a class number from -1 to {n - 1}, found {label}")

    def _column(self, field: Field, values: list[Any]) -> Any:
        import pyarrow as pa

        kind = self._schema.field(field.name).type
        if field.type == "image":
            return _images(values, kind)
        if field.type == "clip":
            return _clips(values, kind)
        return _numbers(field, values) if field.type in _NUMBERS else pa.array(values, kind)

    def _write_group(self) -> None:
        import pyarrow as pa

        keys, *columns = zip(*self._rows) if self._rows else [()] * len(self._schema.names)
        arrays = [pa.array(keys, pa.string())]
        arrays += (self._column(f, list(c)) for f, c in zip(self._pack.fields, columns))
        if self._writer is None:
            self._create()
        assert self._file is not None
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows, self._group_size = [], 0
        if self._file.tell() >= self._limit:
            self._finish()

    def _create(self) -> None:
        import pyarrow.parquet

        self._file = self._folder.create(f"samples-{self._number:06d}.parquet")
        # Files of images do not get smaller.
        plain = (field.name for field in self._pack.fields if field.type not in ("image", "clip"))
        self._writer = pyarrow.parquet.ParquetWriter(
            self._file, self._schema, use_dictionary=False,
            compression={_key_name(self._pack): "zstd", **dict.fromkeys(plain, "zstd")},
        )
        self._number += 1

    def _finish(self) -> None:
        assert self._file is not None
        self._writer.close()
        self._folder.finish(self._file)
        self._writer = self._file = None

    def close(self) -> None:
        if self._rows or not self._number:
            self._write_group()
        if self._writer is not None:
            self._finish()


def _utf8(what: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidError(f"{what}: Parquet stores texts in UTF-8 only") from None


def _size(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(len, value))
    return 0 if value is None else len(value)
