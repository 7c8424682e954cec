# SPDX-License-Identifier: Apache-2.0
"""For Grain: a pack as a data source with random access. It works without Grain, too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, SupportsIndex

from . import _check
from ._clip import Clip
from ._error import NotFoundError
from ._pack import Pack


class PackSource:
    """A pack for grain.DataLoader and grain.MapDataset.source.

    pack    a Pack, its path or its URL
    fields  names of the fields to read; None: all

    source[i] is a dict of field name to value, as pack[i] returns them: an image is the bytes of
    its file, which penstock.decode decodes. Numbers with a shape are NumPy arrays, and a clip is a
    list of frames. The worker processes of Grain open the pack themselves.
    """

    def __init__(
        self, pack: Pack | str | os.PathLike[str], fields: Sequence[str] | None = None
    ) -> None:
        self.pack = pack if isinstance(pack, Pack) else Pack(_check.path(pack, "pack"))
        self.fields = _fields(fields, self.pack)

    def __len__(self) -> int:
        return len(self.pack)

    def __getitem__(self, record_key: SupportsIndex) -> dict[str, Any]:
        sample = self.pack[record_key.__index__()]
        return {name: _value(sample[name]) for name in self.fields}

    def __repr__(self) -> str:
        # Grain compares it when it restores a state.
        return f"PackSource({self.pack.path!r}, {list(self.fields)!r})"


def _fields(fields: Sequence[str] | None, pack: Pack) -> tuple[str, ...]:
    if fields is None:
        return tuple(pack.schema)
    is_list = isinstance(fields, Sequence) and not isinstance(fields, (str, bytes))
    if not is_list or not all(isinstance(name, str) for name in fields):
        raise TypeError(f"fields: expected a list of names, found {_check.shown(fields)}")
    for name in fields:
        if name not in pack.schema:
            known = ", ".join(pack.schema)
            raise NotFoundError(f"fields: the pack has no field {name!r}; it has {known}")
    return tuple(fields)


def _value(value: Any) -> Any:
    """A value that can be pickled, for worker processes, and batched."""
    if isinstance(value, memoryview):
        import numpy

        return numpy.array(value)
    return list(value) if isinstance(value, Clip) else value
