# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: numbers, sizes, paths and words. Errors name what was expected."""

from __future__ import annotations

import math
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


def shown(value: object) -> str:
    """A short text of a value for a message. It works even if repr() raises."""
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def is_boolean(value: object) -> bool:
    """True for a bool of Python, NumPy or torch."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def whole(name: str, value: object) -> int:
    """An integer of any type. Booleans are refused."""
    try:
        if not is_boolean(value):
            return operator.index(value)  # type: ignore[arg-type]
    except Exception:
        pass
    raise TypeError(f"{name}: expected an integer, found {shown(value)}")


def integer(name: str, value: object, low: int, high: int) -> int:
    number = whole(name, value)
    if not low <= number <= high:
        raise InvalidError(f"{name}: expected {low} to {high}, found {shown(number)}")
    return number


def real(name: str, value: object, low: float, high: float, unit: str = "") -> float:
    """A number of any type. NaN, booleans and text are refused."""
    number = None
    try:
        if not is_boolean(value) and not isinstance(value, (str, bytes, bytearray)):
            number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    except Exception:
        pass
    if number is None:
        raise TypeError(f"{name}: expected a number, found {shown(value)}")
    if not low <= number <= high:
        expected = f"{low:.15g} to {high:.15g}{unit}"
        raise InvalidError(f"{name}: expected {expected}, found {shown(value)}")
    return number


def flag(name: str, value: object) -> bool:
    """True or False; 0 and 1 are accepted."""
    if is_boolean(value):
        try:
            return bool(value)
        except Exception:  # an array of several
            pass
    elif isinstance(value, int) and value in (0, 1):
        return value == 1
    raise TypeError(f"{name}: expected True or False, found {shown(value)}")


def text(name: str, value: object) -> str:
    """A str that can be passed to the library as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, found {shown(value)}")
    if "\0" in value:
        raise InvalidError(f"{name}: expected a text without null bytes, found {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidError(f"{name}: expected a valid Unicode text, found {shown(value)}") from None
    return value


def size(name: str, value: int | str) -> int:
    """A number of bytes, from an int or a text like "2GiB" or "500 MB"."""
    if not isinstance(value, str):
        return integer(name, value, 1, 2**63 - 1)
    m = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]?I?)B?\s*", value.upper(), re.A)
    if not m or m[2] not in _UNITS:
        raise InvalidError(
            f"{name}: expected a size like 2GiB, 500MB or a number, found {shown(value)}"
        )
    return integer(name, int(float(m[1]) * _UNITS[m[2]]), 1, 2**63 - 1)


def nearest(word: str, words: Iterable[str]) -> str:
    """'; did you mean X?', or an empty text."""
    import difflib  # only when something is wrong

    near = difflib.get_close_matches(word, list(words), 1, 0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def word(name: str, value: object, words: Iterable[str]) -> str:
    words = list(words)
    expected = ", ".join(words)
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected one of {expected}, found {shown(value)}")
    if value not in words:
        near = nearest(value, words) if len(value) < 100 else ""
        raise InvalidError(f"{name}: expected one of {expected}, found {shown(value)}{near}")
    return value


def path(value: str | os.PathLike[str], name: str = "path") -> str:
    """An absolute path, so that it stays valid after chdir and in other processes."""
    try:
        text = os.fspath(value)
    except Exception:
        text = None
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected str or os.PathLike, found {shown(value)}")
    if not text or "\0" in text:
        raise InvalidError(f"{name}: expected a path without null bytes, found {shown(text)}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidError(f"{name}: this system cannot encode the path {shown(text)}") from None
    return text if "://" in text else os.path.abspath(text)
