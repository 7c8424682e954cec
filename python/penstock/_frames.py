# SPDX-License-Identifier: Apache-2.0
"""The argument `frames`: samples of an epoch are frames of the samples of a pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from . import _check, _subset
from ._error import InvalidError
from ._pack import Pack

Frames = Union[str, Sequence[int]]


def _of_field(pack: Pack, name: str) -> Any:
    """The number of frames of each sample of the pack."""
    fields = {field.name: field for field in pack.fields}
    field = fields.get(name)
    if field is not None and field.type == "clip":
        return pack.column(name, "frames")
    if field is not None and field.type == "i64" and not field.shape:
        return pack.column(name)
    found = f"{field}" if field is not None else f"no such field{_check.nearest(name, fields)}"
    raise InvalidError(
        f"frames: expected a clip, or an i64 field with the number of frames, found {name!r}: "
        f"{found}"
    )


def choose(
    frames: Frames | None, pack: Pack, numbers: memoryview | None, first: int, n: int
) -> memoryview | None:
    """How many frames each of the n samples has that were chosen, for the library."""
    if frames is None:
        return None
    import numpy as np

    expected = f"frames: expected the name of a field, or {n} integers, one for each sample"
    if isinstance(frames, str):
        values = _of_field(pack, frames)
        values = values[first:first + n] if numbers is None else values[
            np.frombuffer(numbers, np.uint64).astype(np.int64)]
    else:
        given: Any = _subset.as_array(frames)
        if not isinstance(given, np.ndarray):
            given = np.array([
                _check.integer(f"frames: entry {i}", value, 0, 2**32 - 1)
                for i, value in enumerate(_subset.as_list(given, expected))], np.int64)
        values = given
    if values.ndim != 1 or values.dtype.kind not in "iu" or len(values) != n:
        raise InvalidError(
            f"{expected}, found an array of {values.dtype} with the shape {values.shape}"
        )
    if n and int(values.min()) < 0:
        raise InvalidError(f"{expected}, found {int(values.min())}")
    return memoryview(np.ascontiguousarray(values, np.uint64)).cast("B")
