# SPDX-License-Identifier: Apache-2.0
"""The argument `weights`: one number per sample."""

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
