# SPDX-License-Identifier: Apache-2.0
"""A few threads that call functions of the user. Unlike those of concurrent.futures, they do not
keep the interpreter from ending when a function never returns."""

from __future__ import annotations

import atexit
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

END_SECONDS = 2.0  # at the end of the interpreter, for calls that are running

_Queue = queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]] | None]
_pools: weakref.WeakSet[Threads] = weakref.WeakSet()


def _work(tasks: _Queue) -> None:
    while (task := tasks.get()) is not None:
        call, arguments = task
        call(*arguments)
        del task, call, arguments  # what they hold is not kept until the next one comes


def _stop(tasks: _Queue, n: int) -> None:
    for _ in range(n):
        tasks.put(None)


class Threads:
    """Calls are started in the order of submit(). They must not raise."""

    def __init__(self, n: int, name: str) -> None:
        self._tasks: _Queue = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            threading.Thread(target=_work, args=(self._tasks,), name=f"{name}_{i}", daemon=True)
            for i in range(n)
        ]
        weakref.finalize(self, _stop, self._tasks, n).atexit = False
        for thread in self._threads:
            thread.start()
        _pools.add(self)

    def submit(self, call: Callable[..., None], *arguments: Any) -> None:
        if self._closed:
            raise RuntimeError("the threads are stopped")
        self._tasks.put((call, arguments))

    def close(self) -> None:
        """Calls that are running continue; the others are discarded."""
        self._closed = True
        try:
            while True:
                self._tasks.get_nowait()
        except queue.Empty:
            _stop(self._tasks, len(self._threads))

    def join(self, deadline: float) -> None:
        """After close(): wait for calls that are running."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _end() -> None:
    pools = list(_pools)
    for pool in pools:
        pool.close()
    deadline = time.monotonic() + END_SECONDS
    for pool in pools:
        pool.join(deadline)


atexit.register(_end)
