# SPDX-License-Identifier: Apache-2.0
"""What the formats share: names of fields, types of values, keys, and the choice of columns."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import _check
from .._error import InvalidError, UnsupportedError
from .._writer import is_shape
from ._reader import Choice

FLOATS = {2: "f32", 4: "f32", 8: "f64"}  # by the size of an item in bytes
IMAGE_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


def need(module: str, where: str, doing: str = "reading this format") -> Any:
    """Import a library that only some formats need."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UnsupportedError(
            f"{where}: {doing} needs {package}; run 'pip install {package}'"
        ) from None


def is_image(data: bytes) -> bool:
    """True if these bytes start like a JPEG, PNG or WebP file."""
    return data.startswith(IMAGE_STARTS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def number_type(kind: str, itemsize: int, shape: Sequence[int] = ()) -> str | None:
    """The type for a NumPy dtype (its kind and itemsize) and a shape; None if no field
    can have it."""
    base = {"b": "i64", "i": "i64", "u": "i64"}.get(kind)
    if kind == "f":
        base = FLOATS.get(itemsize)
    if base is None or any(n < 1 for n in shape) or not is_shape(shape):
        return None
    return f"{base}[{','.join(map(str, shape))}]" if shape else base


def row_key(part: int, row: int) -> str:
    """The key of a row of a dataset without keys."""
    return f"{part:06d}/{row:09d}"


def key_text(column: str, value: Any) -> str:
    """The key in a row of the key column: a text, bytes, or an integer."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise InvalidError(
            f"column {column!r}: expected a key, a text or an integer, found {_check.shown(value)}"
        )
    return value


def check_columns(source: str, known: Iterable[str], choice: Choice) -> None:
    """Every column of the choice is in the dataset, or an error lists those that are."""
    known = list(known)
    for name in (*(choice.columns or ()), choice.key or None, choice.label):
        if name is not None and name not in known:
            near = _check.nearest(name, known)
            listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise InvalidError(f"{source}: no column {name!r}; it has {listed or 'none'}{near}")


def chosen(source: str, found: Mapping[str, str], choice: Choice) -> dict[str, str]:
    """Column to type, from the columns of a dataset and the types found for them. The key is no
    field, unless it is in `choice.columns`; the label always is one."""
    check_columns(source, found, choice)
    if choice.columns is None:
        left_out = choice.key if choice.key != choice.label else None
        return {name: kind for name, kind in found.items() if name != left_out}
    columns = {name: kind or found[name] for name, kind in choice.columns.items()}
    if choice.label is not None:
        columns.setdefault(choice.label, found[choice.label])
    return columns
