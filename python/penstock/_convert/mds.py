# SPDX-License-Identifier: Apache-2.0
"""Datasets of Mosaic Streaming: a folder with index.json and shards in the format MDS."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._error import InvalidError, UnsupportedError
from . import _binary
from ._arrays import array_of, type_of
from ._chunks import Chunk, Reader, images, read_index, scalar
from ._fields import Column, has_index, json_bytes, pickled
from ._pixels import png_of_pil
from ._reader import Choice

_NUMBERS = {
    "int": "q", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
# The numbers that stand for the type of an array.
_DTYPES = {
    8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32",
    34: "float32", 64: "uint64", 65: "int64", 66: "float64",
}  # fmt: skip


def _array(data: bytes, dtype: str | None, shape: Sequence[int] | None) -> Any:
    at = 0
    try:
        if dtype is None:
            dtype = _DTYPES[data[0]]
            at = 1
        if shape is None:
            n, width = data[at] >> 2, data[at] & 3
            shape = struct.unpack_from(f"<{n}{'BHIQ'[width]}", data, at + 1)
            at += 1 + (n << width)
    except (IndexError, KeyError, struct.error):
        raise InvalidError(f"expected an array, found {data[:16]!r}") from None
    return array_of(data[at:], dtype, shape)


def _array_column(name: str, size: int | None, text: str) -> Column:
    """ndarray, ndarray:DTYPE or ndarray:DTYPE:SHAPE."""
    dtype, _, dims = text.partition(":")
    try:
        shape = tuple(map(int, dims.split(","))) if dims else None
    except ValueError:
        shape = (0,)
    if (dtype and dtype not in _DTYPES.values()) or (shape and min(shape) < 1):
        raise InvalidError(f"column {name!r}: unknown encoding 'ndarray:{text[:60]}'")
    kind = type_of(dtype, shape) if dtype and shape else ""
    return Column(name, kind, lambda data: _array(data, dtype or None, shape), size)


def _number_of_text(kind: type) -> Callable[[bytes], Any]:
    def decode(data: bytes) -> Any:
        try:
            return kind(data[:400].decode())
        except ValueError:
            raise InvalidError(f"expected a number, found {data[:40]!r}") from None

    return decode


_PLAIN: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "bytes": ("bytes", bytes),
    "str": ("text", bytes),
    "str_decimal": ("text", bytes),
    "json": ("json", json_bytes),
    "jpeg": ("image", bytes),
    "png": ("image", bytes),
    "pil": ("image", png_of_pil),
    "jpeg_array": ("clip", images),
    "jpegarray": ("clip", images),
    "list[jpeg]": ("clip", lambda data: images(data, 4)),
    "list[png]": ("clip", lambda data: images(data, 4)),
    "list[pil]": ("clip", lambda data: [png_of_pil(frame) for frame in images(data, 4)]),
    "str_int": ("i64", _number_of_text(int)),
    "str_float": ("f64", _number_of_text(float)),
}


def _column(name: str, encoding: str, size: int | None) -> Column:
    if encoding in _PLAIN:
        return Column(name, *_PLAIN[encoding], size)
    if encoding in _NUMBERS:
        kind = {"e": "f32", "f": "f32", "d": "f64"}.get(_NUMBERS[encoding], "i64")
        return Column(name, kind, scalar(_NUMBERS[encoding]), size)
    head, _, rest = encoding.partition(":")
    if head == "ndarray":
        return _array_column(name, size, rest)
    if encoding == "pkl":
        return pickled(name, size)
    raise UnsupportedError(f"column {name!r}: the encoding {encoding[:60]!r} is not supported")


def _columns_of(index: str, shard: Mapping[str, Any]) -> list[Column]:
    names, encodings, sizes = (
        shard.get(f"column_{word}") for word in ("names", "encodings", "sizes")
    )
    lists = (names, encodings, sizes)
    if not all(isinstance(each, list) and len(each) == len(names or ()) for each in lists):
        raise InvalidError(f"{index}: expected lists of column names, encodings and sizes")
    columns = []
    for name, encoding, size in zip(names, encodings, sizes):  # type: ignore[arg-type]
        if not isinstance(name, str) or not isinstance(encoding, str):
            raise InvalidError(f"{index}: expected names of columns, found {name!r:.60}")
        if size is not None:
            _binary.count(index, f"size of column {name!r:.60}", size)
        columns.append(_column(name, encoding, size))
    return columns


def _shard(folder: str, index: str, shard: Any) -> Chunk:
    if not isinstance(shard, dict) or not isinstance(shard.get("raw_data"), dict):
        raise InvalidError(f"{index}: expected shards with raw_data, found {shard!r:.60}")
    if shard.get("version") != 2 or shard.get("format") != "mds":
        raise UnsupportedError(
            f"{index}: expected shards of format mds, version 2, found "
            f"{shard.get('format')!r:.40}, version {shard.get('version')!r:.40}"
        )
    raw, packed = shard["raw_data"], shard.get("zip_data")
    path = _binary.inside(folder, raw.get("basename"), index)
    size = _binary.count(index, "bytes", raw.get("bytes"))
    samples = _binary.count(index, "samples", shard.get("samples"))
    if isinstance(packed, dict) and not os.path.exists(path):
        path = _binary.inside(folder, packed.get("basename"), index)
        return Chunk(path, str(shard.get("compression")), size, samples)
    return Chunk(path, None, size, samples)


def _same_columns(index: str, shards: list[dict[str, Any]]) -> list[Column]:
    """The columns, which are the same in every shard."""
    words = [f"column_{word}" for word in ("names", "encodings", "sizes")]
    if any(shard.get(word) != shards[0].get(word) for shard in shards for word in words):
        raise UnsupportedError(f"{index}: expected the same columns in every shard")
    return _columns_of(index, shards[0])


def recognise(path: str) -> bool:
    """A folder with an index.json of shards."""
    return has_index(path, '"shards"')


def open(source: str, choice: Choice) -> Reader:
    index, _, shards = read_index(source, "shards")
    chunks = [_shard(source, index, shard) for shard in shards]
    return Reader(source, chunks, _same_columns(index, shards), choice)
