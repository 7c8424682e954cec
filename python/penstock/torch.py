# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors, and page-locked (pinned) memory for copies to a GPU.

A slot of the ring is page-locked when it is first used. When the caller requests the next batch, a
CUDA event is recorded. The slot is released only after that event, so that copies which the
training loop has started are finished before the slot is overwritten. If the device is so late that
half of the slots wait for it, the loader waits too: otherwise no slot would be left to fill.
"""

from __future__ import annotations

import collections
import warnings
from typing import Any, Protocol

import torch

from . import _core
from ._error import Error


class _Cuda(Protocol):
    """The CUDA calls that pinning needs."""

    def register(self, address: int, size: int) -> None: ...
    def unregister(self, address: int) -> None: ...
    def record(self) -> Any: ...


class _TorchCuda:
    """CUDA calls through torch, which has loaded the CUDA runtime."""

    def __init__(self) -> None:
        self._cudart: Any = torch.cuda.cudart()

    def _check(self, code: Any, doing: str) -> None:
        if int(code) != 0:
            raise Error(f"pin_memory: {doing} failed: CUDA error {int(code)}")

    def register(self, address: int, size: int) -> None:
        self._check(self._cudart.cudaHostRegister(address, size, 0), f"page-locking {size} bytes")

    def unregister(self, address: int) -> None:
        self._check(self._cudart.cudaHostUnregister(address), "unlocking memory")

    def record(self) -> Any:
        event = torch.cuda.Event()
        event.record()
        return event


class Pinner:
    """Page-locks slots, and keeps their leases until copies from them have finished."""

    def __init__(self, cuda: _Cuda, slots_limit: int) -> None:
        self._cuda = cuda
        self._most_waiting = max(1, slots_limit // 2)
        self._slots: dict[int, int] = {}
        self._current: _core.Batch | None = None
        self._waiting: collections.deque[tuple[Any, _core.Batch]] = collections.deque()

    def lock(self, batch: _core.Batch) -> None:
        """Page-lock the slot of a batch before it is returned."""
        address, size = batch.memory()
        if self._slots.get(address) != size:
            self._cuda.register(address, size)
            self._slots[address] = size
        self._current = batch

    def before_next(self) -> None:
        if self._current is not None:
            self._waiting.append((self._cuda.record(), self._current))
            self._current = None
        while self._waiting and self._waiting[0][0].query():
            self._waiting.popleft()
        self._wait(self._most_waiting)

    def _wait(self, most: int) -> None:
        """Until at most so many slots have unfinished copies."""
        while len(self._waiting) > most:
            event, _ = self._waiting[0]
            event.synchronize()
            self._waiting.popleft()

    def close(self) -> None:
        self.before_next()
        self._wait(0)
        while self._slots:
            self._cuda.unregister(self._slots.popitem()[0])


class Output:
    """Converts batches to tensors for output="torch"."""

    def __init__(self, pin_memory: bool, slots_limit: int) -> None:
        self._pinner: Pinner | None = None
        if pin_memory and torch.cuda.is_available():
            self._pinner = Pinner(_TorchCuda(), slots_limit)
        elif pin_memory:
            warnings.warn(
                "penstock: pin_memory=True has no effect: no CUDA device was found",
                stacklevel=5,
            )

    def tensor(self, tensor: _core.Tensor) -> Any:
        return torch.from_dlpack(tensor.channels_first())

    def take(self, batch: _core.Batch) -> None:
        if self._pinner:
            self._pinner.lock(batch)

    def before_next(self) -> None:
        if self._pinner:
            self._pinner.before_next()

    def close(self) -> None:
        if self._pinner:
            self._pinner.close()
