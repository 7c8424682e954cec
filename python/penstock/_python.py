# SPDX-License-Identifier: Apache-2.0
"""Functions of the user in a pipeline: ops.python. They run after the library has decoded and
transformed a sample, in a few threads, some batches in advance."""

from __future__ import annotations

import _thread
import collections
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _check, _pipeline
from ._error import CancelledError, ClosedError, Error, InvalidError, TimeoutError
from ._pipeline import Op
from ._threads import Threads

_MOST_THREADS = 256
_DEFAULT_THREADS = 8
_SLICE_SECONDS = 0.2

Function = Callable[[dict[str, Any], Any], Mapping[str, Any]]


class Python(Op):
    """A function in a pipeline. Make it with ops.python."""

    __slots__ = ("function", "per", "threads", "version")

    def __init__(self, function: Function, version: int, per: str, threads: int | None) -> None:
        super().__init__("python", f"python version={version} per={per}")
        self.function = function
        self.version = version
        self.per = per
        self.threads = threads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Python) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.function, self.version, self.per, self.threads

    def __reduce__(self) -> tuple[type[Python], tuple[Any, ...]]:
        return Python, self._parts()

    @property
    def title(self) -> str:
        return f"ops.python({getattr(self.function, '__name__', type(self.function).__name__)})"


def python(
    fn: Function, version: int = 1, per: str = "sample", threads: int | None = None
) -> Op:
    """Call a Python function for each sample, or for each batch. Must follow all other operations.

    fn       fn(sample, rng) returns a dict of field name to value. `sample` is such a dict, and
             `rng` is a numpy.random.Generator that depends on the seed, the epoch, the sample and
             the version only. Several threads call it at once. It is not called for a batch of
             no samples (last_batch="short"), which has the fields of the batch before.
    version  number of the function's version; increase it when you change what the function does.
             It is part of the loader state and of the seed of `rng`.
    per      "sample" or "batch"
    threads  threads that call functions; None: as many as decode, at most 8
    """
    if not callable(fn):
        raise TypeError(f"fn: expected a function, found {_check.shown(fn)}")
    version = _check.integer("version", version, 0, 2**63 - 1)
    per = _check.word("per", per, ("sample", "batch"))
    if threads is not None:
        threads = _check.integer("threads", threads, 1, _MOST_THREADS)
    return Python(fn, version, per, threads)


# ---- pipelines


def split(pipeline: Any) -> tuple[Any, tuple[Python, ...]]:
    """A pipeline without its functions, and the functions."""
    if isinstance(pipeline, Mapping):
        for field, ops in pipeline.items():
            if isinstance(ops, Python) or (
                isinstance(ops, Sequence) and any(isinstance(op, Python) for op in ops)
            ):
                raise InvalidError(
                    f"pipeline: {field}: ops.python gets all fields of a sample; write "
                    "pipeline=[{...}, ops.python(fn)]"
                )
    if pipeline is None or isinstance(pipeline, (str, Mapping)):
        return pipeline, ()
    parts = [pipeline] if isinstance(pipeline, Op) else _pipeline.parts("pipeline", pipeline)
    n = len(parts)
    while n and isinstance(parts[n - 1], Python):
        n -= 1
    functions = tuple(parts[n:])
    _check_order(parts[:n], functions)
    if not functions:
        return parts, ()
    if n == 0:
        return None, functions
    return parts[0] if n == 1 and isinstance(parts[0], (Mapping, str)) else parts[:n], functions


def _check_order(others: list[Any], functions: tuple[Python, ...]) -> None:
    if any(isinstance(op, Python) for op in others):
        raise InvalidError("pipeline: ops.python must follow all other operations")
    kinds = [op.per for op in functions]
    if kinds != sorted(kinds, reverse=True):
        raise InvalidError("pipeline: ops.python with per='sample' must precede per='batch'")


def versions(functions: Sequence[Python]) -> str:
    """The functions as a word of a loader state: "1", or "1,2,batch:1"."""
    return ",".join("batch:" * (op.per == "batch") + str(op.version) for op in functions)


def check_versions(saved: object, functions: Sequence[Python]) -> None:
    """Refuses a state that was saved with other versions. Both may have none."""
    found, mine = str(saved or ""), versions(functions)
    if found != mine:
        raise InvalidError(
            f"state: ops.python: expected version {mine or 'none'}, found {found or 'none'}: the "
            "state was saved with other functions; use those, or pass strict=False"
        )


# ---- calls


def need_numpy() -> None:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise ModuleNotFoundError("ops.python needs NumPy: pip install numpy") from None


def _generator(*words: int) -> Any:
    """A random generator that depends on all words."""
    import numpy

    # Pairs of 32 bits, so that different lists of numbers never give the same seed.
    seed = numpy.array(words, numpy.uint64).view(numpy.uint32)
    return numpy.random.Generator(numpy.random.PCG64(numpy.random.SeedSequence(seed)))


class Functions:
    """The functions of a pipeline, to be called for samples and batches."""

    def __init__(
        self, functions: Sequence[Python], seed: int, key: Callable[[int], str] | None
    ) -> None:
        numbered = list(enumerate(functions))
        self.of_sample = [(i, op) for i, op in numbered if op.per == "sample"]
        self.of_batch = [(i, op) for i, op in numbered if op.per == "batch"]
        self._seed = seed
        self._key = key

    def sample(
        self, values: dict[str, Any], epoch: int, number: int, ordinal: int
    ) -> dict[str, Any]:
        for i, op in self.of_sample:
            rng = _generator(self._seed, epoch, number, ordinal, op.version, i)
            values = self._call(op, values, rng, number, None)
        return values

    def batch(self, values: dict[str, Any], epoch: int, position: int) -> dict[str, Any]:
        for i, op in self.of_batch:
            rng = _generator(self._seed, epoch, position, op.version, i)
            values = self._call(op, values, rng, None, position)
        return values

    def _call(
        self, op: Python, values: dict[str, Any], rng: Any, number: int | None, at: int | None
    ) -> dict[str, Any]:
        try:
            result = op.function(values, rng)
            if not isinstance(result, Mapping) or not all(isinstance(name, str) for name in result):
                raise TypeError(
                    f"expected a dict of field name to value, found {_check.shown(result)}"
                )
        except Exception as error:
            raise Error(
                f"{self._where(number, at)}: {op.title}: {type(error).__name__}: {error}",
                sample=number,
            ) from error
        except BaseException as error:  # KeyboardInterrupt, SystemExit, CancelledError, ...
            error.add_note(f"raised by {op.title}, {self._where(number, at)}")
            raise
        return dict(result)

    def _where(self, number: int | None, at: int | None) -> str:
        return f"batch at position {at}" if number is None else self.name(number)

    def name(self, number: int) -> str:
        if self._key is None:  # of several packs
            return f"sample {number}"
        try:
            return f"sample {number} {self._key(number)!r}"
        except Error:
            return f"sample {number}"


# ---- collating


def _is_torch(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "untyped_storage")


def _stack_numbers(values: list[Any]) -> Any:
    """An array of numbers of one type, or None."""
    import numpy

    kind = type(values[0])
    if kind not in (bool, int, float) or any(type(value) is not kind for value in values):
        return None
    try:
        return numpy.array(values, {bool: bool, int: numpy.int64, float: numpy.float64}[kind])
    except OverflowError:
        return None


def collate(values: list[Any], to_torch: bool) -> Any:
    """Values of equal shape and type become one tensor or array; others stay a list."""
    import numpy

    first = values[0]
    if _is_torch(first):
        if all(
            _is_torch(value) and value.shape == first.shape and value.dtype == first.dtype
            for value in values
        ):
            import torch

            return torch.stack(values)
        return values
    if isinstance(first, (numpy.ndarray, numpy.generic)):
        if any(
            not isinstance(value, (numpy.ndarray, numpy.generic))
            or value.shape != first.shape or value.dtype != first.dtype
            for value in values
        ):
            return values
        stacked = numpy.stack(values)
    else:
        stacked = _stack_numbers(values)
    if stacked is None or stacked.dtype.kind not in "biuf":
        return values if stacked is None else stacked
    if not to_torch:
        return stacked
    import torch

    return torch.from_numpy(stacked)


def without_samples(value: Any) -> Any:
    """The same for a batch of no samples, without the memory of this one."""
    import numpy

    if _is_torch(value) and value.ndim:
        return value[:0].clone()
    if isinstance(value, numpy.ndarray) and value.ndim:
        return value[:0].copy()
    return [] if isinstance(value, list) else value


# ---- batches in advance


def copy_info(info: Any) -> Any:
    """A BatchInfo that does not hold the memory of its batch."""
    return info._replace(
        samples=(info.samples.clone if _is_torch(info.samples) else info.samples.copy)(),
        valid=(info.valid.clone if _is_torch(info.valid) else info.valid.copy)(),
    )


class Batch:
    """What the functions need of a batch."""

    def __init__(
        self, names: Sequence[str], items: list[Any], numbers: list[int],
        ordinals: list[int] | None, epoch: int, position: int, info: Any,
    ) -> None:
        self.items = dict(zip(names, items))
        self.numbers = numbers
        self.ordinals = ordinals
        self.epoch = epoch
        self.position = position
        self.info = info


class Job:
    """A batch whose samples several threads work on. The last of them collates."""

    is_end = False

    def __init__(self, functions: Functions, batch: Batch, before: str, to_torch: bool) -> None:
        self.before = before  # state of the loader
        self.info = batch.info
        self.error: BaseException | None = None
        self.made: dict[str, Any] = {}
        self.empty = None if batch.numbers else batch.items  # no function is called for no samples
        self.dropped = False
        self._functions = functions
        self._batch: Batch | None = batch
        self._to_torch = to_torch
        self._lock = _thread.allocate_lock()
        # No threading.Event: a handler that raises may leave its lock held.
        self._is_done = False
        self._done = _thread.allocate_lock()
        self._done.acquire()
        self._results: list[Any] = [None] * len(batch.numbers)
        self._left = 0
        self._failed_at = 0

    def start(self, submit: Callable[..., Any], threads: int) -> None:
        """In parts, so that threads take turns without a task for each sample."""
        n = len(self._results) if self._functions.of_sample else 1
        size = -(-n // (2 * threads))
        starts = range(0, n, size)
        self._left = len(starts)
        for first in starts:
            submit(self._run, first, min(first + size, n))

    def _run(self, first: int, end: int) -> None:
        at = first
        try:
            if self._functions.of_sample and not self.dropped:
                for at in range(first, end):
                    self._results[at] = self._sample(at)
        except BaseException as error:
            with self._lock:
                if self.error is None or at < self._failed_at:
                    self._failed_at, self.error = at, error
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._finish()

    def _running(self) -> str:
        """What the batch waits for: the first sample without a result, or the batch."""
        batch, results = self._batch, self._results
        if batch is None or None not in results or not self._functions.of_sample:
            return "ops.python, for the batch,"
        ops = self._functions.of_sample
        title = ops[0][1].title if len(ops) == 1 else "ops.python"
        return f"{self._functions.name(batch.numbers[results.index(None)])}: {title}"

    def _sample(self, at: int) -> dict[str, Any]:
        batch = self._batch
        assert batch is not None
        values = {name: item[at] for name, item in batch.items.items()}
        ordinal = 0 if batch.ordinals is None else batch.ordinals[at]
        return self._functions.sample(values, batch.epoch, batch.numbers[at], ordinal)

    def _finish(self) -> None:
        batch = self._batch
        assert batch is not None
        try:
            if self.error is None and not self.dropped:
                values = self._collate(batch) if self._functions.of_sample else batch.items
                self.made = self._functions.batch(values, batch.epoch, batch.position)
        except BaseException as error:
            self.error = error
        self._batch, self._results = None, []  # the memory of the batch
        self._is_done = True
        self._done.release()

    def _collate(self, batch: Batch) -> dict[str, Any]:
        names = list(self._results[0])
        for at, result in enumerate(self._results):
            if list(result) != names:
                raise Error(
                    f"{self._functions.name(batch.numbers[at])}: ops.python: expected the fields "
                    f"{_check.shown(names)} as in the first sample of the batch, found "
                    f"{_check.shown(list(result))}", sample=batch.numbers[at],
                )
        return {
            name: collate([result[name] for result in self._results], self._to_torch)
            for name in names
        }

    def wait(self, is_closed: Callable[[], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not self._is_done and not self._done.acquire(True, min(_SLICE_SECONDS, timeout)):
            if is_closed():
                raise ClosedError("the loader is closed")
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"no batch for {timeout:.1f} s: {self._running()} has not returned; correct "
                    "the function, or pass a larger timeout="
                )


class Failed:
    """In the place of a batch that could not be loaded; without an error, the end of the pass."""

    info = None
    made: dict[str, Any] = {}
    empty: dict[str, Any] | None = None

    def __init__(self, error: Error | None, before: str) -> None:
        self.before = before
        self.error = error
        self.is_end = error is None
        self.dropped = False

    def wait(self, is_closed: Callable[[], bool], timeout: float) -> None:
        pass


Pending = collections.deque[Job | Failed]


class Stage:
    """Takes batches from the library in advance and gives them to threads. The caller gets them in
    order. A batch stays pending until the caller has it: the state of the loader is that before
    the first pending one."""

    def __init__(
        self, functions: Functions, ops: Sequence[Python], threads: int, batch_size: int,
        slots: int, to_torch: bool, timeout: float,
    ) -> None:
        chosen = [op.threads for op in ops if op.threads is not None]
        self._threads = max(chosen) if chosen else min(threads, _DEFAULT_THREADS)
        # Enough samples for all threads. The library needs some slots itself.
        wanted = 1 + -(-2 * self._threads // batch_size)
        self._ahead = max(0, min(wanted, slots - 4))
        self._functions = functions
        self._to_torch = to_torch
        self._timeout = timeout
        self._pool: Threads | None = None
        self._closed = False
        self._none: dict[str, Any] | None = None  # a batch as the functions made it, of no samples
        self._pending: Pending = collections.deque()

    @property
    def state(self) -> str | None:
        """None: that of the library."""
        pending = self._pending
        return pending[0].before if pending else None

    def next(
        self, take: Callable[[], Batch | None], save: Callable[[], str],
        deliver: Callable[[Callable[[Job], None], Job], None],
    ) -> Pending | None:
        """The pending batches. The first is the next one, which may not be done yet; None at the
        end."""
        pending = self._pending
        while len(pending) <= self._ahead and not (pending and pending[-1].is_end):
            self._add(pending, take, save, deliver)
        if pending[0].is_end:
            pending.clear()
            return None
        return pending

    def _add(
        self, pending: Pending, take: Callable[[], Batch | None], save: Callable[[], str],
        deliver: Callable[[Callable[[Job], None], Job], None],
    ) -> None:
        before = save()
        try:
            batch = take()
        except (CancelledError, ClosedError):
            raise
        except Error as error:
            pending.append(Failed(error, before))
            return
        if batch is None:
            pending.append(Failed(None, before))
            return
        job = Job(self._functions, batch, before, self._to_torch)
        try:
            if job.empty is None:
                job.start(self._open().submit, self._threads)
            deliver(pending.append, job)
        except BaseException as error:
            job.dropped = job not in pending
            if self._closed and isinstance(error, RuntimeError):
                raise ClosedError("the loader is closed") from None
            raise

    def _open(self) -> Threads:
        if self._pool is None:
            self._pool = Threads(self._threads, "penstock-python")
        return self._pool

    def result(self, pending: Pending, add_seconds: Callable[[float], None]) -> dict[str, Any]:
        """Of the first one. After an error of a function, the next batch follows."""
        begin = time.perf_counter()
        job = pending[0]
        if job.empty is not None:
            return job.empty if self._none is None else dict(self._none)
        job.wait(lambda: self._closed, self._timeout)
        if job.error is not None:
            pending.popleft()
            raise job.error
        add_seconds(time.perf_counter() - begin)
        self._none = {name: without_samples(value) for name, value in job.made.items()}
        return job.made

    def reset(self) -> None:
        """Forget all batches in advance: another pass, or another position."""
        for job in self._pending:
            job.dropped = True
        self._pending = collections.deque()

    def close(self) -> None:
        self._closed = True
        self.reset()
        if self._pool is not None:
            self._pool.close()
