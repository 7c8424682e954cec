# SPDX-License-Identifier: Apache-2.0
"""Datasets of LitData's `optimize`: a folder with index.json and chunks. The index describes the
structure of samples, which are dicts, lists and tuples of values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from .._error import InvalidError, UnsupportedError
from . import _binary
from ._arrays import array_of
from ._chunks import Chunk, Reader, images, read_index, scalar
from ._fields import Column, has_index, pickled
from ._pixels import png_of_pil
from ._reader import Choice

# The numbers that stand for the types of torch and NumPy in LitData's index and headers.
_TORCH = {
    0: "float32", 1: "float32", 2: "float64", 3: "float64", 8: "float16", 9: "float16",
    11: "uint8", 12: "int8", 13: "int16", 14: "int16", 15: "int32", 16: "int32", 17: "int64",
    18: "int64", 19: "bool", 20: "uint16",
}  # fmt: skip
_NUMPY = dict(
    enumerate(
        ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64", "complex64", "complex128", "bool")
    )
)  # fmt: skip
_MAX_DEPTH = 32


def _headed(order: str, dtypes: Mapping[int, str]) -> Callable[[bytes], Any]:
    """An array with a header: type, number of dimensions, shape."""

    def decode(data: bytes) -> Any:
        try:
            number, n = struct.unpack_from(f"{order}II", data)
            shape = struct.unpack_from(f"{order}{min(n, 64)}I", data, 8)
            dtype = dtypes[number]
        except (struct.error, KeyError):
            raise InvalidError(f"expected an array, found {data[:16]!r}") from None
        return array_of(data[8 + 4 * n :], dtype, shape)

    return decode


_LEAVES: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "str": ("text", bytes),
    "text": ("text", bytes),
    "bytes": ("bytes", bytes),
    "file": ("bytes", bytes),
    "bool": ("i64", scalar("?")),
    "int": ("i64", scalar("q")),
    "float": ("f64", scalar("d")),
    "image": ("image", bytes),
    "jpeg": ("image", bytes),
    "pil": ("image", png_of_pil),
    "jpeg_array": ("clip", images),
    "numpy": ("", _headed("<", _NUMPY)),
    "tensor": ("", _headed(">", _TORCH)),
    "video": ("bytes", bytes),
    "audio": ("bytes", bytes),
    "tifffile": ("bytes", bytes),
    "tiff": ("bytes", bytes),
    "pdf": ("bytes", bytes),
    "mesh": ("bytes", bytes),
    "nifti": ("bytes", bytes),
}


def _one_dimension(name: str, dtypes: Mapping[int, str], number: str) -> Column:
    dtype = dtypes.get(int(number)) if number.isdecimal() and len(number) < 4 else None
    if dtype is None:
        raise UnsupportedError(f"column {name!r}: arrays of type {number[:20]!r} are not supported")
    return Column(name, "", lambda data: array_of(data, dtype, None))


def _column(name: str, text: object) -> Column:
    head, _, rest = str(text).partition(":")
    if head == "no_header_numpy":
        return _one_dimension(name, _NUMPY, rest)
    if head == "no_header_tensor":
        return _one_dimension(name, _TORCH, rest)
    if head == "pickle":
        return pickled(name)
    if head not in _LEAVES:
        raise UnsupportedError(f"column {name!r}: the data format {text!r:.60} is not supported")
    return Column(name, *_LEAVES[head])


def _keys(index: str, node: Mapping[str, Any], n: int) -> list[str]:
    """The names of the parts of a dict, list or tuple."""
    kind, context = node.get("type"), node.get("context")
    if kind in ("builtins.list", "builtins.tuple"):
        return [str(i) for i in range(n)]
    if kind not in ("builtins.dict", "collections.OrderedDict") or not isinstance(context, str):
        raise UnsupportedError(f"{index}: samples with a {kind!r:.60} are not supported")
    keys = _binary.parse_json(index, context)
    if not isinstance(keys, list) or len(keys) != n:
        raise InvalidError(f"{index}: expected {n} keys of a dict, found {keys!r:.60}")
    return [str(key) for key in keys]


def _names(index: str, node: Any, prefix: str = "", depth: int = 0) -> list[str]:
    """The names of all values, in the order in which they are stored: {"a": {"b": 1}} is "a.b"."""
    parts = node.get("children_spec") if isinstance(node, dict) else None
    if not isinstance(parts, list) or depth > _MAX_DEPTH:
        raise InvalidError(f"{index}: expected the structure of samples in data_spec")
    if not parts and node.get("type") is None:
        return [prefix or "value"]
    names = []
    for key, part in zip(_keys(index, node, len(parts)), parts):
        names += _names(index, part, f"{prefix}.{key}" if prefix else key, depth + 1)
    return names


def _columns_of(index: str, config: Mapping[str, Any]) -> list[Column]:
    formats, spec = config.get("data_format"), config.get("data_spec")
    tree = _binary.parse_json(index, spec) if isinstance(spec, str) else None
    if not isinstance(formats, list) or not isinstance(tree, list) or len(tree) != 2:
        raise InvalidError(f"{index}: expected data_format and data_spec")
    names = _names(index, tree[1])
    if len(names) != len(formats):
        raise InvalidError(f"{index}: expected {len(names)} data formats, found {len(formats)}")
    return [_column(name, text) for name, text in zip(names, formats)]


def _config(index: str, config: Any) -> dict[str, Any]:
    if not isinstance(config, dict):
        raise InvalidError(f"{index}: expected a config, found {config!r:.60}")
    if config.get("encryption"):
        raise UnsupportedError(f"{index}: encrypted chunks are not supported")
    if config.get("compression") and config.get("compression_level") in ("batch", "sample"):
        raise UnsupportedError(
            f"{index}: chunks compressed by {config['compression_level']} are not supported; write "
            'them with compression_level="chunk", or without compression'
        )
    loader = config.get("item_loader") or "PyTreeLoader"
    if loader != "PyTreeLoader":
        raise UnsupportedError(f"{index}: chunks of {loader!r:.60} are not supported")
    return config


def _chunk(folder: str, index: str, compression: Any, chunk: Any) -> Chunk:
    if not isinstance(chunk, dict):
        raise InvalidError(f"{index}: expected chunks, found {chunk!r:.60}")
    path = _binary.inside(folder, chunk.get("filename"), index)
    size = _binary.count(index, "chunk_bytes", chunk.get("chunk_bytes"))
    samples = _binary.count(index, "chunk_size", chunk.get("chunk_size"))
    return Chunk(path, str(compression) if compression else None, size, samples)


def recognise(path: str) -> bool:
    """A folder with an index.json of chunks."""
    return has_index(path, '"chunks"')


def open(source: str, choice: Choice) -> Reader:
    index, found, chunks = read_index(source, "chunks")
    config = _config(index, found.get("config"))
    parts = [_chunk(source, index, config.get("compression"), chunk) for chunk in chunks]
    return Reader(source, parts, _columns_of(index, config), choice)
