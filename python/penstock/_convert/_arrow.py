# SPDX-License-Identifier: Apache-2.0
"""Rows of Arrow record batches as samples. Parquet files and Hugging Face datasets share it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .. import _check
from .._core import is_remote
from .._error import Error, InvalidError, NotFoundError, ReadWriteError
from .._writer import is_shape
from . import _columns
from ._binary import refuse_pipe
from ._reader import Choice

_MALFORMED = (ValueError, LookupError, TypeError, MemoryError, RecursionError)
BATCH_BYTES = 8 << 20  # of the values that are Python objects at a time
FILE_BYTES = 1 << 30  # of an image that a row names by its path


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Errors of pyarrow and of malformed content become errors that name the file."""
    import pyarrow

    try:
        if not is_remote(path):
            refuse_pipe(path)
        yield
    except Error:
        raise
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except (pyarrow.ArrowException, *_MALFORMED) as error:
        raise InvalidError(f"{path}: cannot read: {_check.shown(str(error))}") from None
    except OSError as error:
        if error.errno is None:  # an error of the format
            raise InvalidError(f"{path}: cannot read: {_check.shown(str(error))}") from None
        raise ReadWriteError(f"{path}: cannot read: {error}", os_errno=error.errno) from None


def slices(batch: Any) -> Iterator[Any]:
    """Pieces of a record batch of about BATCH_BYTES."""
    n = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, n):
        yield batch.slice(start, n)


def features(schema: Any) -> dict[str, Any]:
    """What Hugging Face `datasets` wrote into a schema: column to feature."""
    try:
        found = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return {name: feature for name, feature in found.items()} if isinstance(found, dict) else {}


def _number(kind: Any) -> str | None:
    from pyarrow import types

    if types.is_boolean(kind) or types.is_integer(kind):
        return "i64"
    return _columns.FLOATS[kind.bit_width // 8] if types.is_floating(kind) else None


def _shaped(kind: Any) -> str | None:
    """The type for a number, or for nested lists of numbers whose lengths are fixed."""
    from pyarrow import types

    shape = []
    while types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        kind = kind.value_type
    return _with_shape(_number(kind), shape)


def _with_shape(base: str | None, shape: Any) -> str | None:
    if base is None or not shape:
        return base
    whole = isinstance(shape, list) and all(isinstance(n, int) and n > 0 for n in shape)
    return f"{base}[{','.join(map(str, shape))}]" if whole and is_shape(shape) else None


def _is_file(kind: Any) -> bool:
    """True for the type of a file in Hugging Face datasets: its bytes, or its path."""
    from pyarrow import types

    if kind is None or not types.is_struct(kind):
        return False
    return {kind.field(i).name for i in range(kind.num_fields)} == {
        "bytes",
        "path",
    }


def _is_binary(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(test(kind) for test in tests) or str(kind) == "binary_view"


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _is_printed(kind: Any) -> bool:
    """True for values that are stored as the text which Arrow prints for them."""
    from pyarrow import types

    return types.is_decimal(kind) or (types.is_temporal(kind) and not types.is_interval(kind))


def _storage(kind: Any) -> Any:
    import pyarrow

    if isinstance(kind, pyarrow.BaseExtensionType):
        return _storage(kind.storage_type)
    return _storage(kind.value_type) if pyarrow.types.is_dictionary(kind) else kind


def _content(value: Any) -> bytes | None:
    """The bytes of a value of a column of files."""
    value = value.get("bytes") if isinstance(value, dict) else value
    return value if isinstance(value, bytes) else None


def _check_file(name: str, value: Any) -> None:
    """A value of a column of files is bytes, or a dict with them or a path, or is missing."""
    if isinstance(value, dict) and not value.keys().isdisjoint(("bytes", "path")):
        value = value.get("bytes")
    if not (value is None or isinstance(value, bytes)):
        raise InvalidError(
            f"column {name!r}: expected the bytes of a file, found {type(value).__name__}"
        )


def _json_bytes(column: str, text: str | None) -> bytes | None:
    """The JSON in a text. A text that is none is an error now, not when it is loaded."""
    if text is None:
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        found = _check.shown(text)
        raise InvalidError(f"column {column!r}: expected JSON, found {found}") from None
    return text.encode()


def _seems_image(value: Any) -> bool:
    content = _content(value)
    return content is not None and _columns.is_image(content)


class Table:
    """The fields of a table: how each column of record batches becomes values of a sample.

    nulls(name)  whether the column has missing values; None: unknown
    first(name)  the first value of the column that is not missing, or None
    """

    def __init__(
        self,
        source: str,
        schema: Any,
        choice: Choice,
        nulls: Callable[[str], bool | None],
        first: Callable[[str], Any],
    ) -> None:
        self._features = features(schema)
        self._kinds = {field.name: _storage(field.type) for field in schema}
        if len(self._kinds) != len(schema.names):
            raise InvalidError(f"{source}: two columns have the same name")
        self._nulls, self._first, self._key = nulls, first, choice.key or None
        self._root = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(source))
        _columns.check_columns(source, self._kinds, choice)
        wanted = [*(choice.columns or self._kinds), *filter(None, [choice.label, choice.key])]
        given: Mapping[str, str] = choice.columns or {}
        found = {name: given.get(name) or self._type(name) for name in wanted}
        if _is_file(self._kinds.get(choice.key or "")):  # the key is its path
            choice = replace(choice, key=None)
        self.schema = _columns.chosen(source, found, choice)
        self.class_field = choice.label or self._first_label()
        self.classes = self._class_names(self.class_field)
        self.columns = [name for name in self._kinds if name in self.schema or name == self._key]

    def _first_label(self) -> str | None:
        return next((name for name in self.schema if self._class_names(name)), None)

    def _class_names(self, name: str | None) -> tuple[str, ...]:
        feature = self._features.get(name or "")
        if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
            return ()
        names = feature.get("names")
        return tuple(map(str, names)) if isinstance(names, list) else ()

    # ---- types

    def _type(self, name: str) -> str:
        kind, feature = self._kinds[name], self._features.get(name)
        number = _shaped(kind) or self._array(feature)
        if number:
            return "json?" if self._nulls(name) and not self._class_names(name) else number
        if _is_file(kind) or _is_binary(kind):
            value = self._first(name)
            is_image = _seems_image(value) or self._is_image(feature)
            return "image" if is_image else self._optional(name, "bytes")
        if self._is_clip(name, kind, feature):
            return "clip"
        is_text = _is_text(kind) or _is_printed(kind)
        return self._optional(name, "text" if is_text else "json")

    def _optional(self, name: str, base: str) -> str:
        return base if self._nulls(name) is False else f"{base}?"

    def _is_image(self, feature: Any) -> bool:
        return isinstance(feature, dict) and feature.get("_type") == "Image"

    def _is_clip(self, name: str, kind: Any, feature: Any) -> bool:
        """True for lists of images."""
        from pyarrow import types

        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not is_list or not (_is_file(kind.value_type) or _is_binary(kind.value_type)):
            return False
        value = self._first(name)
        inner = feature.get("feature") if isinstance(feature, dict) else None
        return self._is_image(inner) or (bool(value) and _seems_image(value[0]))

    def _array(self, feature: Any) -> str | None:
        """The type of Array2D, Array3D, ... of `datasets`, which Arrow stores as plain lists."""
        if not isinstance(feature, dict) or not str(feature.get("_type")).startswith("Array"):
            return None
        dtype = str(feature.get("dtype"))
        base = {"float16": "f32", "float32": "f32", "float64": "f64"}.get(dtype)
        if dtype.startswith(("int", "uint", "bool")):
            base = "i64"
        return _with_shape(base, feature.get("shape"))

    # ---- values

    def _file(self, name: str, value: Any) -> Any:
        """The bytes of a file, which a row can also name by a path below the dataset."""
        _check_file(name, value)
        content = _content(value)
        path = value.get("path") if isinstance(value, dict) and content is None else None
        if path is None:
            return content
        real = os.path.realpath(os.path.join(self._root, str(path)))
        if os.path.commonpath([real, self._root]) != self._root:
            raise InvalidError(
                f"a row names the file {_check.shown(path)}, which is not below {self._root}; "
                "store the bytes of images in the dataset, as to_parquet of datasets does"
            )
        if not os.path.isfile(real):  # a pipe would block
            raise NotFoundError(f"{real}: no such file, which a row names")
        if os.path.getsize(real) > FILE_BYTES:
            raise InvalidError(f"{real}: expected an image of at most 1 GiB")
        with open(real, "rb") as file:
            return file.read()

    def _values(self, name: str, array: Any) -> list[Any]:
        import pyarrow

        kind = self._kinds[name]
        while isinstance(array, pyarrow.ExtensionArray):
            array = array.storage
        base = self.schema.get(name, "").rstrip("?")
        if _is_printed(kind) and base != "i64":
            array = array.cast(pyarrow.string())
        values: list[Any] = array.to_pylist()
        if base in ("image", "mask", "bytes"):
            return [self._file(name, value) for value in values]
        if base == "clip":
            return [[self._file(name, frame) for frame in value or ()] for value in values]
        if base == "i64" and None in values:
            raise InvalidError(
                f"column {name!r} has missing values, which i64 cannot have; leave it out, or "
                f"store it as '{name}:json?'"
            )
        if base == "json" and _is_text(kind):
            return [_json_bytes(name, value) for value in values]
        if base in ("f32", "f64"):
            return [math.nan if value is None else value for value in values]
        return values

    def _keys(self, array: Any) -> list[str]:
        name = self._key or ""
        values = array.to_pylist()
        if _is_file(self._kinds[name]):
            values = [value and value["path"] for value in values]
        return [_columns.key_text(name, value) for value in values]

    def rows(self, batch: Any, part: int, start: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """The samples of a record batch. `start` is the number of its first row in the part."""
        for piece in slices(batch):
            columns = {name: piece.column(name) for name in self.columns}
            values = [self._values(name, columns[name]) for name in self.schema]
            if self._key is not None:
                keys = self._keys(columns[self._key])
            else:
                keys = [_columns.row_key(part, start + i) for i in range(piece.num_rows)]
            for key, *row in zip(keys, *values):
                yield key, dict(zip(self.schema, row))
            start += piece.num_rows


class TableReader:
    """What readers of tables have in common; they set both members."""

    _table: Table
    _parts: list[tuple[int, int]]  # the number of the file, and of the part in it

    @property
    def schema(self) -> Mapping[str, str]:
        return self._table.schema

    @property
    def classes(self) -> Sequence[str]:
        return self._table.classes

    @property
    def class_field(self) -> str | None:
        return self._table.class_field

    @property
    def parts(self) -> int:
        return len(self._parts)
