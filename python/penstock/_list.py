# SPDX-License-Identifier: Apache-2.0
"""Text, JSON and bytes in batches."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, SupportsIndex, overload

from . import _check, _core
from ._error import DecodeError, InvalidError

_SHOWN, _SHOWN_BYTES = 3, 60  # values in a repr, and bytes of each


class BatchList:
    """The values of a text, json or bytes field in a batch, or the keys of its samples. It behaves
    like a list of str, parsed JSON values or bytes. A missing value is None.

    type      "text", "json", "bytes" or "key": the operation of the pipeline
    data      the bytes of all values, one after another
    offsets   value i is data[offsets[i]:offsets[i + 1]]; int64, one more than values
    validity  one bit per value, least significant bit first; 0: the value is missing

    The three are memoryviews of the memory of the batch, in the layout of Arrow: numpy.asarray and
    pyarrow.array(batch_list) do not copy. Values are made on access and are copies.
    """

    # Not a collections.abc.Sequence: Lightning, Accelerate and DataLoader take those apart, item by
    # item, to move tensors in them to a device.
    __slots__ = ("_batch", "_field", "_views", "type")

    def __init__(self, batch: _core.Batch, field: int, kind: str) -> None:
        self._batch = batch
        self._field = field
        self._views: tuple[memoryview, memoryview, memoryview] | None = None
        self.type = kind

    def _parts(self) -> tuple[memoryview, memoryview, memoryview]:
        if self._views is None:
            offsets, validity = self._batch.list(self._field)
            data = self._batch.field(self._field)
            self._views = memoryview(data), memoryview(offsets), memoryview(validity)
        return self._views

    @property
    def data(self) -> memoryview:
        return self._parts()[0]

    @property
    def offsets(self) -> memoryview:
        return self._parts()[1]

    @property
    def validity(self) -> memoryview:
        return self._parts()[2]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _value(self, i: int) -> Any:
        data, offsets, validity = self._parts()
        if not validity[i // 8] >> i % 8 & 1:
            return None
        value = data[offsets[i] : offsets[i + 1]]
        if self.type == "bytes":
            return bytes(value)
        if self.type == "json":
            return self._parse(i, value)
        return str(value, "utf-8", "surrogateescape" if self.type == "key" else "strict")

    def _parse(self, i: int, value: memoryview) -> Any:
        import json  # slow to import, and most programs do not need it

        try:
            return json.loads(str(value, "utf-8"))
        except (ValueError, RecursionError) as error:
            sample = memoryview(self._batch.samples())[i]
            raise DecodeError(
                f"sample {sample}: expected JSON, found other text: {error}", sample=sample
            ) from None

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return [self._value(i) for i in range(*index.indices(len(self)))]
        i = _check.whole("index", index)
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"index {_check.shown(i)}: the batch has {n} samples")
        return self._value(i % n)

    def __iter__(self) -> Iterator[Any]:
        return map(self._value, range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._value, reversed(range(len(self))))

    def tolist(self) -> list[Any]:
        """All values as a list. It does not hold the memory of the batch."""
        return list(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, BatchList)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return list, (self.tolist(),)

    def __arrow_array__(self, type: Any = None) -> Any:
        """For pyarrow.array: large_string, or large_binary of bytes. It shares the memory."""
        import pyarrow

        data, offsets, validity = (pyarrow.py_buffer(part) for part in self._parts())
        kind = pyarrow.large_binary() if self.type == "bytes" else pyarrow.large_string()
        array = pyarrow.Array.from_buffers(kind, len(self), [validity, offsets, data])
        if self.type == "key":
            try:
                array.validate(full=True)
            except pyarrow.ArrowInvalid:
                raise InvalidError("key: expected UTF-8, found other bytes") from None
        return array if type is None else array.cast(type)

    def _shown(self, i: int) -> str:
        """The beginning of a value, for messages; JSON as it is stored."""
        data, offsets, validity = self._parts()
        if not validity[i // 8] >> i % 8 & 1:
            return "None"
        begin, end = offsets[i], offsets[i + 1]
        value = bytes(data[begin : min(end, begin + _SHOWN_BYTES)])
        text = repr(value if self.type == "bytes" else value.decode("utf-8", "replace"))
        return text if end - begin <= _SHOWN_BYTES else text + "..."

    def __repr__(self) -> str:
        shown = [self._shown(i) for i in range(min(len(self), _SHOWN))]
        more = ["..."] if len(self) > _SHOWN else []
        return f"<penstock.BatchList of {len(self)} {self.type}: [{', '.join(shown + more)}]>"
