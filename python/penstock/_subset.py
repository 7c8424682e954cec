# SPDX-License-Identifier: Apache-2.0
"""The argument `subset`: sample numbers, a mask, a range or a slice."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Any, Union

from . import _check
from ._error import InvalidError

Subset = Union[Sequence[int], Sequence[bool], range, slice]

# A list of numbers for the library, or None and a range: its start and length.
Chosen = tuple[Union[memoryview, None], int, int]

_NO_LISTS = (str, bytes, bytearray, dict, set, frozenset)


def _expected(n: int) -> str:
    return (
        f"subset: expected sample numbers from 0 to {n - 1}, a mask of {n} booleans, "
        "a range or a slice"
    )


def _out_of_range(number: int, place: int | None, n: int) -> InvalidError:
    what = f"subset: expected numbers from 0 to {n - 1}, found {number}"
    if place is not None:
        what += f" at index {place}"
    if -n <= number < 0:
        what += f"; negative numbers do not count from the end: use {number + n}"
    return InvalidError(what)


def _of_range(subset: range, n: int) -> Chosen:
    for number in (subset[0], subset[-1]):
        if not 0 <= number < n:
            raise _out_of_range(number, None, n)
    if subset.step == 1:
        return None, subset.start, len(subset)
    return memoryview(array.array("Q", subset)), 0, 0


def _check_mask(length: int, n: int) -> None:
    if length != n:
        raise InvalidError(
            f"subset: expected a mask of {n} booleans, one for each sample of the pack, "
            f"found {length}"
        )


def _check_no_mask(length: int, largest: int, n: int) -> None:
    """Refuse a mask that was converted to integers: it would select samples 0 and 1 only."""
    if length == n > 2 and largest <= 1:
        raise InvalidError(
            f"subset: expected sample numbers, found {n} numbers that are all 0 or 1, like a mask; "
            "pass a mask as booleans, for example mask.astype(bool)"
        )


def _of_array(subset: Any, n: int) -> Chosen:
    """The samples that a NumPy array selects."""
    import numpy

    if subset.ndim != 1:
        raise InvalidError(f"subset: expected one dimension, found the shape {subset.shape}")
    if subset.dtype.kind == "b":
        _check_mask(len(subset), n)
        subset = numpy.flatnonzero(subset)
    if not len(subset):
        raise InvalidError("subset: expected at least one sample, found none")
    if subset.dtype.kind not in "iu":
        raise InvalidError(f"{_expected(n)}, found an array of {subset.dtype}")
    wrong = (subset < 0) | (subset >= n)
    if wrong.any():
        place = int(wrong.argmax())
        raise _out_of_range(int(subset[place]), place, n)
    _check_no_mask(len(subset), int(subset.max()), n)
    return memoryview(numpy.ascontiguousarray(subset, dtype=numpy.uint64)).cast("B").cast("Q"), 0, 0


def _whole(value: object, place: int, n: int) -> int:
    try:
        return _check.whole("subset", value)
    except TypeError:
        raise TypeError(f"{_expected(n)}, found {_check.shown(value)} at index {place}") from None


def _of_values(values: list[Any], n: int) -> Chosen:
    kinds = {kind.__name__ in ("bool", "bool_") for kind in set(map(type, values))}
    if kinds == {True}:
        _check_mask(len(values), n)
        values = [i for i, chosen in enumerate(values) if chosen]
    elif True in kinds:
        raise InvalidError(f"{_expected(n)}, found booleans and numbers in one list")
    if not values:
        raise InvalidError("subset: expected at least one sample, found none")
    chosen = array.array("Q")
    for place, value in enumerate(values):
        number = _whole(value, place, n)
        if not 0 <= number < n:
            raise _out_of_range(number, place, n)
        chosen.append(number)
    _check_no_mask(len(chosen), max(chosen), n)
    return memoryview(chosen), 0, 0


def as_array(values: Any) -> Any:
    """A tensor as a NumPy array if NumPy is installed; other values unchanged."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    try:
        return values.detach().cpu().numpy()
    except (RuntimeError, TypeError):  # NumPy is not installed, or lacks the dtype
        return values.tolist()


def as_list(values: Any, expected: str) -> list[Any]:
    if isinstance(values, _NO_LISTS):
        raise TypeError(f"{expected}, found {type(values).__name__}")
    try:
        return list(values)
    except Exception as error:
        raise TypeError(f"{expected}, found {type(values).__name__}: {error}") from None


def choose(subset: Subset | None, n: int) -> Chosen:
    """The samples that `subset` selects from a pack of n samples."""
    if subset is None:
        return None, 0, 0
    if isinstance(subset, slice):
        try:
            subset = range(*subset.indices(n))
        except (TypeError, ValueError) as error:
            raise type(error)(f"subset: {subset!r}: {error}") from None
    if isinstance(subset, range):
        if not subset:
            raise InvalidError("subset: expected at least one sample, found none")
        return _of_range(subset, n)
    subset = as_array(subset)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(subset, numpy.ndarray):
        return _of_array(subset, n)
    return _of_values(as_list(subset, _expected(n)), n)


def count(numbers: memoryview | None, length: int, n: int) -> int:
    """How many samples were chosen from a pack of n samples."""
    return (length or n) if numbers is None else len(numbers)
