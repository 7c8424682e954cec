# SPDX-License-Identifier: Apache-2.0
"""The argument `weights`: one number per sample, and weights that balance classes."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Any

from . import _check, _subset
from ._error import InvalidError


def _expected(n: int) -> str:
    return f"weights: expected {n} numbers of 0 or more, one for each sample"


def _of_array(weights: Any, n: int) -> memoryview:
    import numpy

    if weights.ndim != 1 or weights.dtype.kind not in "iuf":
        raise InvalidError(
            f"{_expected(n)}, found an array of {weights.dtype} with the shape {weights.shape}"
        )
    return memoryview(numpy.ascontiguousarray(weights, dtype=numpy.float64)).cast("B")


def _of_values(values: list[Any], n: int) -> memoryview:
    largest = sys.float_info.max
    numbers = [_check.real(f"weights: entry {i}", value, 0, largest)
               for i, value in enumerate(values)]
    return memoryview(array.array("d", numbers)).cast("B")


def choose(weights: Sequence[float] | None, n: int) -> memoryview | None:
    """The weights of n samples, for the library, which refuses what is no weight."""
    if weights is None:
        return None
    given: Any = _subset.as_array(weights)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(given, numpy.ndarray):
        chosen = _of_array(given, n)
    else:
        chosen = _of_values(_subset.as_list(given, _expected(n)), n)
    if len(chosen) != 8 * n:
        raise InvalidError(f"{_expected(n)}, found {len(chosen) // 8}")
    return chosen


def _labels(labels: Any) -> Any:
    """As an array of integers."""
    import numpy

    expected = "labels: expected integers, one for each sample"
    values = _subset.as_array(labels)
    if not isinstance(values, numpy.ndarray):
        chosen = [_check.whole(f"labels: entry {i}", value)
                  for i, value in enumerate(_subset.as_list(values, expected))]
        if any(not -(2**63) <= value < 2**63 for value in chosen):
            raise InvalidError(f"{expected}, found a number of more than 64 bits")
        values = numpy.array(chosen, numpy.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InvalidError(
            f"{expected}, found an array of {values.dtype} with the shape {values.shape}"
        )
    return values


def _rates(sizes: list[int], power: float) -> list[float]:
    """1 / size ** power for each size. NumPy's power can differ in the last bit between processors,
    and all ranks need the same weights; decimal numbers do not differ."""
    import decimal

    context, exponent = decimal.Context(prec=28), decimal.Decimal(-power)
    known = {size: float(context.power(size, exponent)) for size in set(sizes)}
    return [known[size] for size in sizes]


def balanced_weights(labels: Sequence[int], power: float = 1.0) -> Any:
    """Weights for Loader(weights=...) that balance the classes, as a NumPy array.

    labels  the class of each sample: pack.column("label"), or a part of it for a subset
    power   1: every class is equally frequent. 0.5: a class is as frequent as the square root of
            its size. 0: as in the pack.

    The weight of a sample is 1 / (size of its class) ** power. To give one class a larger share,
    multiply its weights.
    """
    import numpy

    power = _check.real("power", power, 0, 1)
    _, numbers, sizes = numpy.unique(_labels(labels), return_inverse=True, return_counts=True)
    return numpy.array(_rates(sizes.tolist(), power))[numbers]
