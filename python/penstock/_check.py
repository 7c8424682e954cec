# SPDX-License-Identifier: Apache-2.0
"""Arguments: numbers, sizes, paths and words, with errors that say what was expected."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable

from ._error import InvalidError

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}


def integer(name: str, value: object, low: int, high: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, found {value!r}") from None
    if not low <= number <= high:
        raise InvalidError(f"{name}: expected {low} to {high}, found {number}")
    return number


def size(name: str, value: int | str) -> int:
    """Bytes from a number or a text like "2GiB", "500 MB"."""
    if not isinstance(value, str):
        return integer(name, value, 1, 2**63 - 1)
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", value.upper())
    if not m or m[2] not in _UNITS:
        raise InvalidError(f"{name}: expected a size like 2GiB, 500MB or a number, found {value!r}")
    return integer(name, int(float(m[1]) * _UNITS[m[2]]), 1, 2**63 - 1)


def nearest(word: str, words: Iterable[str]) -> str:
    """'; did you mean X?', or nothing."""
    import difflib  # only when something is wrong

    near = difflib.get_close_matches(word, list(words), 1, 0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def word(name: str, value: object, words: Iterable[str]) -> str:
    words = list(words)
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected one of {', '.join(words)}, found {value!r}")
    if value not in words:
        expected = ", ".join(words)
        raise InvalidError(
            f"{name}: expected one of {expected}, found {value!r}{nearest(value, words)}"
        )
    return value


def path(value: str | os.PathLike[str]) -> str:
    """An absolute path, so that it holds after chdir and in other processes."""
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError(f"path: expected str or os.PathLike, found {value!r}")
    if "\0" in text:
        raise InvalidError("path: a name has no zero bytes")
    return text if "://" in text else os.path.abspath(text)
