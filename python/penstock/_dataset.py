# SPDX-License-Identifier: Apache-2.0
"""Samples of a pack by number, decoded and transformed: a dataset for other data loaders."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _check, _core, _loader, _pipeline, _python
from ._error import InvalidError
from ._pack import Pack

_OUTPUTS = ("torch", "numpy")
_MAX_EPOCH = 2**63 - 1


@functools.lru_cache(maxsize=64)
def _sample_type(names: tuple[str, ...]) -> Callable[..., Any]:
    """The class of samples: a named tuple. Invalid field names are replaced by _0, _1, ..."""
    make_kind: Any = collections.namedtuple
    kind = make_kind("Sample", names, rename=True)
    # Worker processes send samples and batches of this class, which they make themselves.
    kind.__reduce__ = lambda self: (_remake, (names, tuple(self)))
    make: Callable[..., Any] = kind._make
    return make


def _remake(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return _sample_type(names)(values)


class _Epoch:
    """The epoch, in memory that worker processes share with the process that sets it."""

    def __init__(self, epoch: int = 0, shared: Any = None) -> None:
        if shared is None:
            from multiprocessing.sharedctypes import RawValue

            shared = RawValue("Q", epoch)
        self.shared = shared

    def __reduce__(self) -> tuple[type[_Epoch], tuple[Any, ...]]:
        from multiprocessing.context import get_spawning_popen

        # Shared memory can be passed to a process that multiprocessing starts, to no other.
        if get_spawning_popen() is None:
            return _Epoch, (int(self.shared.value),)
        return _Epoch, (0, self.shared)


class Dataset:
    """Samples by number, decoded and transformed, for DataLoader, Accelerate, Trainer or Grain: any
    loop that takes a map-style dataset.

    pack      a Pack, its path or its URL
    pipeline  operations per field, as in Loader
    seed      seed of all random operations
    output    "torch" or "numpy"
    as_dict   True: a sample is a dict of field name to value, as Trainer expects it; False: a named
              tuple, so that `for image, label in ...` works
    memory    memory limit of each process for reading and decoding: "2GiB"

    dataset[i] is sample i as a Loader with the same pipeline and seed returns it in the same epoch,
    without the batch dimension. A text is a str, JSON is parsed, and bytes and keys are bytes and
    str. The sample is read and decoded when you request it, on the calling thread. Several threads
    can do so at once.

    Worker processes can be forked or spawned. Each opens the pack itself. Pickling stores the path
    or URL, the pipeline and the seed, but neither data nor credentials.
    """

    def __init__(
        self,
        pack: Pack | str | os.PathLike[str],
        pipeline: _pipeline.Pipeline | None = None,
        *,
        seed: int = 0,
        output: str = "torch",
        as_dict: bool = False,
        memory: int | str = "2GiB",
    ) -> None:
        self.pack = pack if isinstance(pack, Pack) else Pack(_check.path(pack, "pack"))
        self.seed = _check.integer("seed", seed, 0, 2**64 - 1)
        self.output = _check.word("output", output, _OUTPUTS)
        self.as_dict = _check.flag("as_dict", as_dict)
        self._memory = _check.size("memory", memory)
        operations, self._ops = _python.split(pipeline)
        self._text = _pipeline.text(operations)
        self._functions = _functions(self._ops, self.seed, self.pack)
        self._epoch = _Epoch()
        self._opened = os.getpid(), self._open()
        self._fields = _loader.describe(self._opened[1], self.output)
        self.fields = tuple(field.name for field in self._fields)
        self._output = _loader.make_output(self.output, False, 0)

    def _open(self) -> _core.Loader:
        return _core.Loader(
            pack=self.pack._core,
            pipeline=self._text,
            batch_size=1,
            order=0,
            last_batch=0,
            seed=self.seed,
            rank=0,
            world=1,
            threads=1,
            io_threads=1,
            prefetch=0,
            shuffle_buffer=0,
            memory=self._memory,
            on_bad=0,
            stall_ms=300_000,
            max_bad=0,
            subset=None,
            first=0,
            count=0,
            keep_slots=False,
        )

    def _handle(self) -> _core.Loader:
        """Of this process. Threads that open it at once do the same work, which does no harm; a
        lock could be held by a thread that a forked process does not have."""
        pid, core = self._opened
        if pid != os.getpid():
            core = self._open()
            self._opened = os.getpid(), core
        return core

    # ---- samples

    def __len__(self) -> int:
        """The number of samples in the pack."""
        return len(self.pack)

    def _place(self, index: object) -> tuple[int, int]:
        epoch = self.epoch
        if isinstance(index, (tuple, list)):
            if len(index) != 2:
                raise TypeError(
                    f"index: expected a number, or an epoch and a number, found "
                    f"{_check.shown(index)}"
                )
            epoch, index = _check.integer("epoch", index[0], 0, _MAX_EPOCH), index[1]
        i, n = _check.whole("index", index), len(self)
        if not -n <= i < n:
            raise IndexError(f"no sample {_check.shown(i)}: {self.pack.path} has {n} samples")
        return epoch, i % n

    def __getitem__(self, index: Any) -> Any:
        """Sample i in the epoch that set_epoch has set: dataset[i]; or in another epoch:
        dataset[epoch, i]."""
        epoch, i = self._place(index)
        batch = self._handle().get(epoch, i)
        items = _loader.items(batch, self._fields, self._output)
        values = {name: item[0] for name, item in zip(self.fields, items)}
        if self._functions is not None:
            values = self._functions.sample(values, epoch, i, 0)
        return values if self.as_dict else _sample_type(tuple(values))(values.values())

    def __getitems__(self, indices: Iterable[Any]) -> list[Any]:
        """Several samples, for DataLoader."""
        return [self[index] for index in indices]

    # ---- epoch

    @property
    def epoch(self) -> int:
        """The epoch of dataset[i]."""
        return int(self._epoch.shared.value)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of dataset[i], which changes all random draws, in this process and in the
        worker processes of its DataLoaders. Call it between two passes: workers that prefetch use
        the new epoch at once."""
        self._epoch.shared.value = _check.integer("epoch", epoch, 0, _MAX_EPOCH)

    # ---- properties

    @property
    def pipeline(self) -> str:
        """The text of the pipeline with every parameter."""
        return self._handle().pipeline()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        settings = {
            "seed": self.seed, "output": self.output, "as_dict": self.as_dict,
            "memory": self._memory,
        }
        pipeline: Any = self._text
        if self._ops:
            pipeline = [self._text] * (self._text is not None) + list(self._ops)
        return _restore, (self.pack, pipeline, settings, self._epoch)

    def __repr__(self) -> str:
        # Grain compares it when it restores a state.
        functions = f", python {_python.versions(self._ops)}" if self._ops else ""
        text = self.pipeline + functions
        return f"<penstock.Dataset {self.pack.path}: {len(self)} samples, {text}>"


def _functions(
    ops: Sequence[_python.Python], seed: int, pack: Pack
) -> _python.Functions | None:
    if not ops:
        return None
    if any(op.per == "batch" for op in ops):
        raise InvalidError(
            "pipeline: ops.python: expected per='sample', because a dataset has no batches; use "
            "collate_fn of the DataLoader"
        )
    _python.need_numpy()
    return _python.Functions(ops, seed, pack.key)


def _restore(
    pack: Pack, pipeline: _pipeline.Pipeline | None, settings: dict[str, Any], epoch: _Epoch
) -> Dataset:
    dataset = Dataset(pack, pipeline, **settings)
    dataset._epoch = epoch
    return dataset
