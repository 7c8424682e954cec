# SPDX-License-Identifier: Apache-2.0
"""Ragged fields in batches: arrays with any number of rows per sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

from . import _check
from ._error import InvalidError


class Ragged:
    """The values of a ragged field in a batch. It behaves like a list of arrays with any number of
    rows. A missing value is None.

    values    the rows of all values, one after another
    offsets   value i is values[offsets[i]:offsets[i + 1]]; int64, one more than values
    validity  one bit per value, least significant bit first; 0: the value is missing

    All are views of the memory of the batch: values and offsets in the output type of the loader,
    validity as a memoryview. pyarrow.array(ragged) does not copy either.
    """

    # Not a collections.abc.Sequence, for the reason that BatchList is none.
    __slots__ = ("_bounds", "offsets", "validity", "values")

    def __init__(self, values: Any, offsets: Any, validity: Any) -> None:
        self.values = values
        self.offsets = offsets
        self.validity = memoryview(validity)
        self._bounds: list[int] | None = None

    def _ends(self) -> list[int]:
        """The offsets as integers of Python, which are faster to use one by one."""
        if self._bounds is None:
            offsets = self.offsets if _library(self.offsets) else memoryview(self.offsets)
            self._bounds = offsets.tolist()
        return self._bounds

    def __len__(self) -> int:
        return len(self._ends()) - 1

    def _value(self, i: int) -> Any:
        if not self.validity[i // 8] >> i % 8 & 1:
            return None
        ends = self._ends()
        values = self.values if _library(self.values) else memoryview(self.values)
        return values[ends[i] : ends[i + 1]]

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return [self._value(i) for i in range(*index.indices(len(self)))]
        i, n = _check.whole("index", index), len(self)
        if not -n <= i < n:
            raise IndexError(f"index {_check.shown(i)}: the batch has {n} samples")
        return self._value(i % n)

    def __iter__(self) -> Iterator[Any]:
        return map(self._value, range(len(self)))

    def tolist(self) -> list[Any]:
        """All values as nested lists of numbers. It does not hold the memory of the batch."""
        return [None if value is None else value.tolist() for value in self]

    def pad(self, value: float = 0, max_rows: int | None = None) -> tuple[Any, Any]:
        """A dense array [samples, rows, ...] with `value` in the rows that a sample does not have,
        and a mask [samples, rows] that is True for the rows that it has. Both are copies.

        max_rows  the number of rows; None: those of the longest value
        """
        value = _check.real("value", value, -(2**53), 2**53)
        if value != int(value) and "int" in str(self.values.dtype):
            raise InvalidError(f"value: expected an integer for {self.values.dtype}, found {value}")
        ends = self._ends()
        lengths = [ends[i + 1] - ends[i] for i in range(len(self))]
        rows = max(lengths, default=0)
        if max_rows is not None:
            most, rows = rows, _check.integer("max_rows", max_rows, 0, 2**24)
            if most > rows:
                raise InvalidError(
                    f"max_rows: expected at least {most}, the rows of value "
                    f"{lengths.index(most)}, found {rows}"
                )
        if _library(self.values) == "torch":
            return _pad_torch(self.values, lengths, rows, value)
        return _pad_numpy(self.values, lengths, rows, value)

    def nested(self) -> Any:
        """A torch nested tensor with the jagged layout, which shares the memory. A missing
        value has 0 rows."""
        if _library(self.values) != "torch":
            raise InvalidError("nested: expected a loader with output='torch'")
        import torch

        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)

    def to(self, *args: Any, **kwargs: Any) -> Ragged:
        """The same on another device, as torch.Tensor.to. dtypes apply to the values alone."""
        if _library(self.values) != "torch":
            raise InvalidError("to: expected a loader with output='torch'")
        values = self.values.to(*args, **kwargs)
        offsets = self.offsets.to(values.device, non_blocking=kwargs.get("non_blocking", False))
        moved = Ragged(values, offsets, bytes(self.validity))
        moved._bounds = self._ends()
        return moved

    def __reduce__(self) -> Any:
        copies = (_copy(self.values), _copy(self.offsets), bytes(self.validity))
        return Ragged, copies

    def __arrow_array__(self, type: Any = None) -> Any:
        """For pyarrow.array: a large_list of the rows. It shares the memory."""
        import numpy
        import pyarrow

        values = numpy.asarray(self.values)
        rows: Any = pyarrow.array(values.reshape(-1))
        for n in reversed(values.shape[1:]):
            rows = pyarrow.FixedSizeListArray.from_arrays(rows, n)
        offsets = pyarrow.py_buffer(numpy.asarray(self.offsets))
        array = pyarrow.Array.from_buffers(
            pyarrow.large_list(rows.type), len(self), [pyarrow.py_buffer(self.validity), offsets],
            children=[rows],
        )  # fmt: skip
        return array if type is None else array.cast(type)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, ("*", *tuple(self.values.shape)[1:])))
        return f"<penstock.Ragged of {len(self)} values [{shape}], {self.values.shape[0]} rows>"


def _library(values: Any) -> str:
    """The library of an array; "": memory without methods of its own, as output="dlpack" has it."""
    name = type(values).__module__.partition(".")[0]
    return "" if name == "penstock" else name


def _copy(values: Any) -> Any:
    if _library(values) == "torch":
        return values.clone()
    import numpy

    return numpy.array(values)


def _pad_numpy(values: Any, lengths: list[int], rows: int, value: float) -> tuple[Any, Any]:
    import numpy

    from_rows = numpy.asarray(values)
    mask = numpy.arange(rows) < numpy.array(lengths, "int64").reshape(-1, 1)
    dense = numpy.full((*mask.shape, *from_rows.shape[1:]), value, from_rows.dtype)
    dense[mask] = from_rows
    if _library(values) in ("jax", "jaxlib"):
        import jax

        return jax.numpy.asarray(dense), jax.numpy.asarray(mask)
    return dense, mask


def _pad_torch(values: Any, lengths: list[int], rows: int, value: float) -> tuple[Any, Any]:
    import torch

    device = values.device
    counts = torch.tensor(lengths, device=device).reshape(-1, 1)
    mask = torch.arange(rows, device=device) < counts
    dense = torch.full(
        (*mask.shape, *values.shape[1:]), value, dtype=values.dtype, device=device
    )  # fmt: skip
    dense[mask] = values
    return dense, mask
