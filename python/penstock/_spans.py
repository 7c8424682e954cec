# SPDX-License-Identifier: Apache-2.0
"""The trace of this process: spans of Python code, and the loaders whose threads it follows.

docs/reference/trace.md lists the spans.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from . import _check, _core, _dist
from ._error import Error, InvalidError

if TYPE_CHECKING:
    from ._sampler import Sampler

_VARIABLE = "PENSTOCK_TRACE"
SAMPLES_PER_SECOND = 2.0
_active: list[Trace] = []  # one at most
_read_in: list[int] = []  # processes that have read the variable


class _Traced(Protocol):
    """What a trace uses of a loader."""

    @property
    def _core(self) -> _core.Loader: ...


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b"?")


class Trace:
    """A trace that is being written. Create one with penstock.trace().

    path     the file
    events   number of events in the file, after close()
    dropped  number of events that are not in it, because the disk was full or too slow
    """

    def __init__(self, path: str | bytes, rank: int, world: int, samples_per_second: float) -> None:
        if current() is not None:
            raise InvalidError(
                f"trace: this process is writing {_active[0].path!r}; close it first, or unset "
                f"{_VARIABLE}"
            )
        self.path: str = os.fsdecode(path)
        self.events = 0
        self.dropped = 0
        self._pid = os.getpid()
        self._core = _core.Trace(path, rank, world)
        self._named: set[int] = set()
        self._loaders: set[weakref.ref[_Traced]] = set()
        _active[:] = [self]
        self._sampler: Sampler | None = None
        if samples_per_second:
            from . import _sampler  # needs ctypes

            self._sampler = _sampler.Sampler(self._count, self._stats, samples_per_second)

    def _follow(self, loader: _Traced) -> None:
        loader._core.trace(self._core)
        # A method of C removes it: see _loader._alive.
        self._loaders.add(weakref.ref(loader, self._loaders.discard))

    def _following(self) -> Iterator[_Traced]:
        for reference in list(self._loaders):
            loader = reference()
            if loader is not None:
                yield loader

    def _stats(self) -> Iterator[dict[str, Any]]:
        for loader in self._following():
            with contextlib.suppress(Error):  # it may be closed
                yield loader._core.stats(False, 0.0)

    def _count(self, name: str, series: str, value: float) -> None:
        self._core.counter(_bytes(name), _bytes(series), value)

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Add a span with this name: what the thread does until the `with` block ends."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            self._add(_bytes(name), begin, time.monotonic_ns())

    def _add(self, name: bytes, begin_ns: int, end_ns: int) -> None:
        thread = threading.get_native_id()
        if thread not in self._named:
            self._named.add(thread)
            self._core.thread(_bytes(threading.current_thread().name))
        self._core.span(name, begin_ns, end_ns)

    def close(self) -> None:
        """Write what is left and close the file. It warns if events are missing."""
        if self not in _active or self._pid != os.getpid():
            return
        _active.clear()
        if self._sampler is not None:
            self._sampler.stop()
        for loader in self._following():
            with contextlib.suppress(Error):
                loader._core.trace(None)
        self.events, self.dropped, _, error = self._core.close()
        if error is not None:
            warnings.warn(f"penstock: trace {self.path}: {error}", stacklevel=2)
        elif self.dropped:
            warnings.warn(
                f"penstock: trace {self.path}: {self.dropped} events are not in it, because they "
                "came faster than they could be written",
                stacklevel=2,
            )

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError("a Trace belongs to its process and cannot be pickled")


def current() -> Trace | None:
    """The trace of this process. A forked child has none."""
    if not _active or _active[0]._pid != os.getpid():
        return None
    return _active[0]


def span(name: str) -> AbstractContextManager[None]:
    """Add a span to the trace of this process: what this thread does until the `with` block ends.
    Without a trace it does nothing.

    name  such as "batch_to_device", "run_batch" or "forward"
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a text, found {_check.shown(name)}")
    trace = current()
    return contextlib.nullcontext() if trace is None else trace.span(name)


# ---- for loaders


def _place(path: str, rank: int, world: int) -> str:
    """The name of the file of this rank: `run.json` becomes `run.rank2.json`."""
    if world == 1:
        return path
    folder, name = os.path.split(path)
    stem, dot, ending = name.partition(".")
    return os.path.join(folder, f"{stem}.rank{rank}{dot}{ending}")


def _from_environment() -> Trace | None:
    """The trace that the variable asks for, when the first loader of a process is created. A
    mistake in it does not end the training."""
    path = os.environ.get(_VARIABLE)
    if not path or _read_in:
        return None
    _read_in.append(os.getpid())
    try:
        rank, world = _dist.place(None, None)
        return Trace(os.fsencode(_place(path, rank, world)), rank, world, SAMPLES_PER_SECOND)
    except Error as error:
        warnings.warn(f"penstock: {_VARIABLE}: nothing is traced: {error}", stacklevel=5)
        return None


def join(loader: _Traced) -> None:
    """A loader was created."""
    trace = current() or _from_environment()
    if trace is not None:
        trace._follow(loader)


def end() -> None:
    """The interpreter exits."""
    if _active:
        _active[0].close()
