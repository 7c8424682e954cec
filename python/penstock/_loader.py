# SPDX-License-Identifier: Apache-2.0
"""Load batches from a pack."""

from __future__ import annotations

import _thread
import atexit
import collections
import functools
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from . import (
    _buckets,
    _check,
    _compare,
    _core,
    _dist,
    _frames,
    _pipeline,
    _python,
    _remote,
    _spans,
    _stats,
    _subset,
    _tokens,
    _weights,
)
from ._error import CancelledError, ClosedError, InvalidError
from ._list import BatchList
from ._mix import Mix
from ._pack import Pack, Preload
from ._ragged import Ragged

_ORDERS = {"sequential": 0, "random": 1, "shuffle": 2, "sticky": 3}
_LAST_BATCH = {"short": 1, "pad": 2, "drop": 3}  # 0: as the library chooses
_ON_BAD = {"raise": 0, "substitute": 1}
_TEXTS = ("pack", "pipeline", "subset", "hash")  # of a state: hexadecimal, even if all are decimal
_OUTPUTS = ("torch", "numpy", "dlpack", "jax")

# Arguments of torch.utils.data.DataLoader that Loader does not have, and what to use instead.
_REPLACED = {
    "num_workers": "threads= sets the number of decoding threads; there are no worker processes",
    "collate_fn": "the loader collates batches itself; transform= is called with each batch",
    "worker_init_fn": "there are no worker processes; seed= controls all randomness",
    "sampler": "use order=, subset=, weights= and seed=; the loader splits samples across ranks",
    "batch_sampler": "use batch_size=, order=, subset= and last_batch=",
    "persistent_workers": "threads live as long as the loader",
    "prefetch_factor": "use prefetch=, the number of batches to prefetch",
    "generator": "use seed=",
    "multiprocessing_context": "there are no worker processes",
    "pin_memory_device": "pin_memory=True pins for the current CUDA device",
    "in_order": "batches are always returned in order",
    "num_threads": "use threads=",
    "world": "use world_size=",
    "dataset": "the pack is the first argument",
}

# Dead references remove themselves by set.discard, a C function: a KeyboardInterrupt in a callback
# that is written in Python would be lost.
_alive: set[weakref.ref[Loader]] = set()
_ending_in: list[int] = []  # the thread that runs the exit of the interpreter
_CLOSE_SECONDS = 0.5


@atexit.register
def _close_all() -> None:
    """Stop the threads before the interpreter exits, without relying on __del__. If storage does
    not respond in time, its loaders are left running: their threads do not use Python."""
    _ending_in.append(_thread.get_ident())
    _core.end()
    deadline = time.monotonic() + _CLOSE_SECONDS
    for reference in list(_alive):
        loader = reference()
        if loader is not None and time.monotonic() < deadline:
            loader.close()
    _spans.end()


def _end_quietly() -> None:
    """End a thread that requests batches while the interpreter exits. An exception would only be
    printed by the code that started the thread."""
    if _ending_in and _thread.get_ident() not in _ending_in:
        raise SystemExit


class BatchInfo(NamedTuple):
    """Describes a batch. It is the last item of each batch with return_info=True.

    samples      sample numbers in the pack
    valid        False for samples that only pad the last batch
    n_valid      number of valid samples
    epoch        epoch of the batch
    position     position of its first sample in the order of the epoch, counted over all ranks
    substituted  number of samples that replace bad samples
    bucket       number of the bucket in buckets=; None without buckets
    length       length of the step, of those in lengths=; None without a token budget
    order_hash   16 hexadecimal digits of all that defines the order: state_dict()["hash"]
    """

    samples: Any
    valid: Any
    n_valid: int
    epoch: int
    position: int
    substituted: int
    bucket: int | None = None
    length: int | None = None
    order_hash: str = ""


class BadSample(NamedTuple):
    """A bad sample, and the sample that replaced it."""

    epoch: int
    sample: int
    instead: int
    status: int
    message: str


class _Output(Protocol):
    """Converts the memory of a batch to the output type."""

    def tensor(self, tensor: _core.Tensor) -> Any: ...
    def take(self, batch: _core.Batch) -> None: ...
    def before_next(self) -> None: ...
    def close(self) -> None: ...


class _Plain:
    """Output as NumPy or JAX arrays, or as DLPack tensors without conversion."""

    def __init__(self, convert: Callable[[_core.Tensor], Any] | None) -> None:
        self._convert = convert

    def tensor(self, tensor: _core.Tensor) -> Any:
        return self._convert(tensor) if self._convert else tensor

    def take(self, batch: _core.Batch) -> None:
        pass

    def before_next(self) -> None:
        pass

    def close(self) -> None:
        pass


def _numpy_output() -> _Output:
    try:
        import numpy
    except ImportError:
        raise ModuleNotFoundError(
            "output='numpy' needs NumPy: pip install numpy, or use output='torch' or 'dlpack'"
        ) from None
    return _Plain(numpy.asarray)


def _jax_output() -> _Output:
    try:
        from jax.dlpack import from_dlpack
    except ImportError:
        raise ModuleNotFoundError(
            "output='jax' needs JAX: pip install jax, or use output='numpy' or 'dlpack'"
        ) from None
    # The array holds the slot until JAX has no more use for it, computations in flight included.
    return _Plain(from_dlpack)


def _torch_output(pin_memory: bool, slots_limit: int) -> _Output:
    try:
        from . import torch as _torch
    except ImportError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "output='torch' needs PyTorch: pip install torch, or use output='numpy' or 'dlpack'"
        ) from None
    return _torch.Output(pin_memory, slots_limit)


def make_output(output: str, pin_memory: bool, slots_limit: int) -> _Output:
    if pin_memory and output != "torch":
        raise InvalidError(f"pin_memory: expected output='torch', found {output!r}")
    if output == "torch":
        return _torch_output(pin_memory, slots_limit)
    if output == "jax":
        return _jax_output()
    return _numpy_output() if output == "numpy" else _Plain(None)


class Field(NamedTuple):
    """A field of the batches."""

    number: int
    name: str
    kind: str | None  # of a list


def describe(core: _core.Loader, output: str) -> list[Field]:
    """The fields of the batches. Warns about what the library does."""
    warning = core.warning()
    if warning is not None:
        warnings.warn(f"penstock: {warning}", stacklevel=3)
    fields = core.fields()
    bf16 = [name for name, dtype, *_ in fields if dtype == "bf16"]
    if output == "numpy" and bf16:
        raise InvalidError(
            f"pipeline: {bf16[0]}: NumPy has no bf16; use 'tensor f16' or 'tensor f32', or "
            "output='torch' or 'dlpack'"
        )
    found = [Field(i, name, kind) for i, (name, *_, kind) in enumerate(fields)]
    # The next field has the sizes of a list of images, which tensors have themselves.
    sizes = [field.number + 1 for field in found if field.kind == "images"]
    return [field for field in found if field.number not in sizes]


def items(batch: _core.Batch, fields: list[Field], output: _Output) -> list[Any]:
    """The fields of a batch in the output type."""
    return [
        output.tensor(batch.field(field.number))
        if field.kind is None
        else _list(batch, field.number, field.kind, output)
        for field in fields
    ]


def _list(
    batch: _core.Batch, field: int, kind: str, output: _Output
) -> BatchList | Ragged | list[Any]:
    if kind == "images":
        return [output.tensor(image) for image in batch.images(field)]
    if kind != "ragged":
        return BatchList(batch, field, kind)
    offsets, validity = batch.list(field)
    return Ragged(output.tensor(batch.field(field)), output.tensor(offsets), validity)


def _order(order: str | None, shuffle: bool | None) -> int:
    if shuffle is not None:
        shuffle = _check.flag("shuffle", shuffle)
    if order is None:
        return _ORDERS["shuffle" if shuffle else "sequential"]
    number = _ORDERS[_check.word("order", order, _ORDERS)]
    if shuffle is not None and shuffle != (order != "sequential"):
        raise InvalidError(f"shuffle={shuffle} contradicts order={order!r}; use order alone")
    return number


def _last_batch(last_batch: str | None, drop_last: bool | None) -> int:
    if drop_last is not None and last_batch is not None:
        raise InvalidError(
            f"last_batch={_check.shown(last_batch)} and drop_last={_check.shown(drop_last)}: "
            "expected one of them, found both; drop_last=True is last_batch='drop'"
        )
    if drop_last is not None and _check.flag("drop_last", drop_last):
        return _LAST_BATCH["drop"]
    if last_batch is None:
        return 0
    return _LAST_BATCH[_check.word("last_batch", last_batch, _LAST_BATCH)]


@functools.lru_cache(maxsize=64)
def _batch_type(names: tuple[str, ...]) -> Callable[..., Any]:
    """The class of batches: a named tuple. Invalid field names are replaced by _0, _1, ..."""
    make_kind: Any = collections.namedtuple
    kind = make_kind("Batch", names, rename=True)
    # The class exists in this process only, so a batch is pickled as a plain tuple.
    kind.__reduce__ = lambda self: (tuple, (tuple(self),))
    make: Callable[..., Any] = kind._make
    return make


class _Stepped(Protocol):
    """A loader whose epoch can be set."""

    def set_epoch(self, epoch: int) -> None: ...
    def _rank_samples(self) -> int: ...


class _Sampler:
    """Lets frameworks set the epoch: loader.sampler.set_epoch(epoch)."""

    def __init__(self, loader: _Stepped) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        return self._loader._rank_samples()


_NO_PICKLE = "a Loader has threads and cannot be pickled; create one in each process"

# What a pass returns, and the function and its argument that count it as delivered.
_Loaded = tuple[Any, Callable[[Any], object], object]


class _Pass(_core.Pass):
    """One pass over an epoch. Several threads can iterate; each batch goes to one of them."""

    def __init__(self, loader: Loader, number: int) -> None:
        self._loader: Loader | None = loader
        self._number = number

    def __reduce__(self) -> Any:
        raise TypeError(_NO_PICKLE)

    def _load(self) -> _Loaded:
        """The next batch. If anything raises, it is the next one again."""
        trace = _spans.current()
        if trace is None:
            return self._take()
        with trace.span("next_data"):
            return self._take()

    def _take(self) -> _Loaded:
        loaded = None if self._loader is None else self._loader._next(self._number)
        if loaded is None:
            self._loader = None
            raise StopIteration
        return loaded


class Loader:
    """Load batches from a pack: decoded, transformed and collated by threads. The batches do not
    depend on the number of threads or on restarts.

    pack         a Pack, its path or its URL; or a mixture of packs, made by penstock.mix
    batch_size   samples per batch of this rank; leave it out with tokens
    shuffle      True: order="shuffle"
    order        "sequential"; "shuffle": mixes the samples of many blocks from all over the pack,
                 so that an object store or a disk is read with large requests; "random": mixes all
                 samples at once, which is one request per sample from a store; "sticky": like
                 "shuffle", but each rank keeps its blocks in every epoch, so that a cache can
                 serve them
    shuffle_buffer
                 number of samples that "shuffle" and "sticky" mix; None: as many as 1 GiB of the
                 pack holds. A pack that is not larger is shuffled completely
    seed         seed of the order and of all random operations
    last_batch   what becomes of samples that do not fill the batches of all ranks. "short": they
                 are divided among the ranks, whose last batches differ by at most one sample; with
                 fewer samples than ranks, some batches have none. "pad": repeated samples fill the
                 batches; `batch.info.valid` is False for these. "drop": they are left out. None:
                 "pad" if the loader shuffles for several ranks, else "short". This applies to the
                 last step of an epoch, also with tokens and for a mixture; with buckets, to the
                 last step of each bucket.
    drop_last    True: last_batch="drop"
    pipeline     operations per field: a dict of field name to a text or a list of penstock.ops;
                 batches then have exactly these fields. A text or a list alone is for the first
                 image field, or with ops.clip for the first clip field; the field "label" comes
                 with it, if the pack has one. None: that image and "label" as they are stored;
                 images of several sizes are a list of tensors
    threads      decoding threads; None: one per core. Ranks on one machine share its cores.
    memory       memory limit for batches, prefetching and decoding: "2GiB"
    output       "torch", "numpy", "jax" or "dlpack"
    rank, world_size
                 None: from torch.distributed, jax.distributed, torchrun or Slurm; else 0 and 1
    compare_ranks
                 how ranks compare, before their first batch, what defines the order. None: through
                 the key-value store of torch.distributed, if it is initialized; a function that
                 gets a text and returns the list of the texts of all ranks; the path of a directory
                 that all ranks share; or False: they do not
    prefetch     batches to prepare in advance; None: automatic
    subset       sample numbers, a mask with one boolean per sample, a range or a slice. A sample
                 can be listed several times; each repetition gets its own random draws.
    weights      how often each sample is in an epoch, relative to the others: one number per sample
    buckets      sizes of batches, each (height, width): every batch has samples of one bucket, and
                 all ranks have the same bucket in a step. In the pipeline, `bucket` is its size:
                 "decode | cover bucket". See aspect_buckets.
    tokens, lengths
                 a token budget instead of batch_size: every step has one of the lengths, the same
                 on all ranks, and batches of tokens // length samples per rank. In the pipeline,
                 "patches 16" returns so many patches per image.
    frames       samples are frames of clips: the name of a clip field, or of an i64 field with the
                 number of frames; or one number for each sample. An epoch has every frame once. In
                 the pipeline, `at` counts from it: "decode | clip 2 1 at=-1", "ragged 16 at=0"
    on_bad       "raise", or "substitute": replace bad samples, at most max_bad per epoch
    max_bad      maximum number of replaced samples per epoch
    timeout      maximum time to wait for a batch, in seconds
    pin_memory   True: page-locked batches, for asynchronous copies to a GPU
    transform    a function that is called with each batch; its result is returned instead
    return_info  True: append a BatchInfo to each batch
    io_threads   reading threads, or concurrent requests for a pack at a URL; None: automatic
    storage_options
                 options for a URL, as in penstock.open
    cache, cache_bytes
                 a local directory that keeps blocks, and its maximum size, as in penstock.open
    preload      True: load the entire pack into shared memory first, as in penstock.open

    Each `for` loop is one epoch. The next loop is the next epoch, unless set_epoch selects another.
    A batch keeps its memory while one of its tensors exists, so copy what you keep.
    """

    batch_sampler: None = None  # Lightning reads it in evaluation, because `sampler` exists

    def __init__(
        self,
        pack: Pack | Mix | str | os.PathLike[str],
        batch_size: int | None = None,
        *,
        shuffle: bool | None = None,
        order: str | None = None,
        shuffle_buffer: int | None = None,
        seed: int = 0,
        last_batch: str | None = None,
        drop_last: bool | None = None,
        pipeline: _pipeline.Pipeline | None = None,
        threads: int | None = None,
        memory: int | str = "2GiB",
        output: str = "torch",
        rank: int | None = None,
        world_size: int | None = None,
        prefetch: int | None = None,
        subset: _subset.Subset | None = None,
        weights: Sequence[float] | None = None,
        buckets: Iterable[Sequence[int]] | None = None,
        tokens: int | None = None,
        lengths: Iterable[int] | None = None,
        frames: _frames.Frames | None = None,
        on_bad: str = "raise",
        max_bad: int = 100,
        timeout: float = 300.0,
        pin_memory: bool = False,
        transform: Callable[[Any], Any] | None = None,
        return_info: bool = False,
        io_threads: int | None = None,
        storage_options: _remote.StorageOptions | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int | str | None = None,
        preload: Preload = False,
        compare_ranks: _compare.How = None,
        **unknown: Any,
    ) -> None:
        for name in unknown:
            raise TypeError(_unknown(name))
        is_open = isinstance(pack, (Pack, Mix))
        if is_open and storage_options is not None:
            raise InvalidError("storage_options: the pack is already open; pass them to open()")
        if is_open and (cache is not None or cache_bytes is not None):
            raise InvalidError("cache: the pack is already open; pass it to open()")
        if is_open and preload is not False:
            raise InvalidError("preload: the pack is already open; pass it to open()")
        _check.word("output", output, _OUTPUTS)
        self.dataset: Pack | Mix = (
            pack
            if isinstance(pack, (Pack, Mix))
            else Pack(_check.path(pack, "pack"), storage_options, cache, cache_bytes, preload)
        )
        self._budget = budget = _tokens.choose(tokens, lengths, batch_size)
        self.tokens = None if budget is None else budget.tokens
        self.lengths = None if budget is None else budget.lengths
        self.batch_size: int = (  # with a token budget, that of the largest batch
            _check.integer("batch_size", batch_size, 1, 2**31 - 1)
            if budget is None
            else budget.most()
        )
        self.rank, self.world_size = _dist.place(rank, world_size)
        timeout = _check.real("timeout", timeout, 0.001, 4e6, " seconds")
        self._comparison = _compare.choose(compare_ranks, self.rank, self.world_size, timeout)
        if transform is not None and not callable(transform):
            raise TypeError(f"transform: expected a function, found {_check.shown(transform)}")
        self.transform = transform
        self.return_info = _check.flag("return_info", return_info)
        pin_memory = _check.flag("pin_memory", pin_memory)
        operations, functions = _python.split(pipeline)
        _check_functions(functions, output, pin_memory)
        mixed = self.dataset if isinstance(self.dataset, Mix) else None
        own = {"subset": subset, "weights": weights, "frames": frames}
        given = [name for name, value in own.items() if value is not None]
        if mixed is not None and given:
            raise InvalidError(
                f"{given[0]}: a mix has all samples of its packs; "
                "write a pack of those that you want, or load it alone"
            )
        numbers, first, count = _subset.choose(subset, len(self.dataset))
        n_chosen = _subset.count(numbers, count, len(self.dataset))
        self.buckets = _buckets.choose(buckets)
        self._core = _core.Loader(
            pack=self.dataset._core if isinstance(self.dataset, Pack)
            else self.dataset.packs[0]._core,
            pipeline=_pipeline.text(operations),
            batch_size=self.batch_size if budget is None else 1,
            order=_order(order, shuffle),
            last_batch=_last_batch(last_batch, drop_last),
            seed=(seed := _check.integer("seed", seed, 0, 2**64 - 1)),
            rank=self.rank,
            world=self.world_size,
            threads=_optional("threads", threads, 4096),
            io_threads=_optional("io_threads", io_threads, 4096),
            prefetch=_optional("prefetch", prefetch, 2**20),
            shuffle_buffer=_optional("shuffle_buffer", shuffle_buffer, 2**62),
            memory=_check.size("memory", memory),
            on_bad=_ON_BAD[_check.word("on_bad", on_bad, _ON_BAD)],
            stall_ms=round(timeout * 1000),
            max_bad=_check.integer("max_bad", max_bad, 0, 2**63 - 1),
            subset=numbers,
            first=first,
            count=count,
            keep_slots=pin_memory,
            weights=_weights.choose(weights, n_chosen),
            mix=None if mixed is None else mixed._settings(),
            buckets=_buckets.packed(self.buckets),
            tokens=0 if budget is None else budget.tokens,
            lengths=None if budget is None else budget.packed(),
            frames=None
            if isinstance(self.dataset, Mix)
            else _frames.choose(frames, self.dataset, numbers, first, n_chosen),
        )
        self._order_hash = self._core.order_hash()
        self.last_batch = list(_LAST_BATCH)[self._core.last_batch() - 1]
        self.drop_last = self.last_batch == "drop"  # Lightning reads it
        self._fields = describe(self._core, output)
        self.fields = tuple(field.name for field in self._fields)
        if self.return_info:
            _check_info(self.fields)
        if len(self) == 0:
            warnings.warn(
                f"penstock: an epoch has no batches: it has {self.samples} samples, and "
                f"last_batch='drop' needs {self.world_size} x {self.batch_size}"
                f"{' in a bucket' if self.buckets else ''}, one batch per rank; "
                f"reduce {'tokens' if self._budget else 'batch_size'}, or use last_batch='short'",
                stacklevel=2,
            )
        self._counters = _stats.Counters(self._core, self.dataset)
        facts = self._core.stats(False, 0.0)
        self._output = make_output(output, pin_memory, facts["slots_limit"])
        self._functions = functions
        self._stage = None
        if functions:
            self._stage = _python.Stage(
                _python.Functions(functions, seed, getattr(self.dataset, "key", None)), functions,
                facts["threads"], self.batch_size, facts["slots_limit"], output == "torch",
                timeout,
            )
        self._make = _batch_type(self.fields + ("info",) * self.return_info)
        self._pid = os.getpid()
        self._reference = weakref.ref(self, _alive.discard)
        _alive.add(self._reference)
        _spans.join(self)

    # ---- iteration

    def __len__(self) -> int:
        """The number of batches per epoch, the same on every rank."""
        return self._core.len()

    def __iter__(self) -> Iterator[Any]:
        """Start a pass over an epoch. It ends a pass that is still running."""
        try:
            number = self._core.begin()
            if self._stage is not None:
                self._stage.reset()
            self._counters.begin_epoch()
            return _Pass(self, number)
        except (CancelledError, ClosedError):
            _end_quietly()
            raise

    def _next(self, number: int) -> _Loaded | None:
        """The next batch of a pass; None at its end."""
        try:
            self._core.check(number)
            if self._comparison is not None:
                self._compare(self._comparison)
            return self._load(number) if self._stage is None else self._call(self._stage, number)
        except (CancelledError, ClosedError):
            _end_quietly()
            raise

    def _load(self, number: int) -> _Loaded | None:
        batch = self._take(number)
        if batch is None:
            return None
        values = items(batch, self._fields, self._output)
        if self.return_info:
            values.append(self._info(batch))
        return self._transform(self._make(values)), self._core.deliver, number

    def _call(self, stage: _python.Stage, number: int) -> _Loaded | None:
        """A batch that the functions have worked on."""
        pending = stage.next(
            lambda: self._take_values(number), self._core.save,
            functools.partial(self._core.deliver, number),
        )
        if pending is None:
            return None
        entry = pending[0]
        result = stage.result(pending, self._counters.add_transform)
        self._core.check(number)  # another thread may have begun another pass
        if self.return_info:
            _check_info(result)
        make = _batch_type((*result, *("info",) * self.return_info))
        made = make([*result.values(), *(entry.info,) * self.return_info])
        return self._transform(made), pending.remove, entry

    def _compare(self, comparison: _compare.Comparison) -> None:
        """With the other ranks, once: samples would be lost if their orders differed."""
        more = {
            "batch_size": self.batch_size,
            "world_size": self.world_size,
            "last_batch": self.last_batch,
        }
        comparison.run(_compare.settings(self._core.save(), more), self._core.len)
        self._comparison = None

    def _take_values(self, number: int) -> _python.Batch | None:
        """A batch for the functions."""
        batch = self._take(number)
        if batch is None:
            return None
        epoch, position, *_ = batch.counts()
        ordinals = batch.ordinals()
        return _python.Batch(
            names=self.fields,
            items=items(batch, self._fields, self._output),
            numbers=memoryview(batch.samples()).tolist(),
            ordinals=None if ordinals is None else memoryview(ordinals).tolist(),
            epoch=epoch,
            position=position,
            info=_python.copy_info(self._info(batch)) if self.return_info else None,
        )

    def _take(self, number: int) -> _core.Batch | None:
        self._output.before_next()
        batch = self._core.next(number)
        if batch is not None:
            self._output.take(batch)
        return batch

    def _transform(self, made: Any) -> Any:
        if self.transform is None:
            return made
        begin = time.perf_counter()
        made = self.transform(made)
        self._counters.add_transform(time.perf_counter() - begin)
        return made

    def _info(self, batch: _core.Batch) -> BatchInfo:
        epoch, position, _, n_valid, substituted = batch.counts()
        return BatchInfo(
            samples=self._output.tensor(batch.samples()),
            valid=self._output.tensor(batch.valid()),
            n_valid=n_valid,
            epoch=epoch,
            position=position,
            substituted=substituted,
            bucket=None if self.buckets is None else batch.bucket(),
            length=None if self._budget is None else self._budget.lengths[batch.bucket()],
            order_hash=self._order_hash,
        )

    def _rank_samples(self) -> int:
        """Samples of this rank in an epoch; with short batches it may have one fewer."""
        n = len(self) * self.batch_size
        return min(n, -(-self.samples // self.world_size)) if self.last_batch == "short" else n

    # ---- position

    @property
    def epoch(self) -> int:
        """The current epoch, or the next one between passes."""
        if self._stage is None or self._stage.state is None:
            return self._core.epoch()
        state = self.state_dict()  # the library is ahead of the caller
        return int(state["epoch"]) + (state["position"] == state["samples"])

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass, or of a pass that has not returned a batch yet. Setting
        the epoch that load_state_dict restored keeps the position in it."""
        self._core.set_epoch(_check.integer("epoch", epoch, 0, 2**63 - 1))
        if self._stage is not None:
            self._stage.reset()

    @property
    def sampler(self) -> _Sampler:
        """For frameworks that call loader.sampler.set_epoch(epoch)."""
        return _Sampler(self)

    def state_dict(self) -> dict[str, int | str]:
        """The position, as a dict of int and str. It is equal on every rank and can be loaded with
        any number of ranks. A batch counts once it was returned."""
        state: dict[str, int | str] = {}
        text = self._core.save()  # raises if the loader is closed or of another process
        if self._stage is not None:
            text = self._stage.state or text
        for part in text.split():
            name, _, value = part.partition("=")
            state[name] = value if name in _TEXTS or not value.isdecimal() else int(value)
        if self._functions:
            state["python"] = _python.versions(self._functions)
        return state

    def load_state_dict(self, state: Mapping[str, int | str], strict: bool = True) -> None:
        """Resume at the position of a state_dict, in the next pass. If all batches of its epoch
        were returned, but the pass had not ended, the next pass has no batches. The state of
        another pack, pipeline, subset or seed is refused, unless strict is False."""
        if not isinstance(state, Mapping):
            raise TypeError(
                f"state: expected a dict from state_dict(), found {_check.shown(state)}"
            )
        strict = _check.flag("strict", strict)
        if strict:
            _python.check_versions(state.get("python"), self._functions)
        parts = [
            f"{_word('a name', name)}={_word(name, value)}"
            for name, value in state.items() if name != "python"
        ]
        self._core.restore(" ".join(parts), strict)
        if self._stage is not None:
            self._stage.reset()
        restored = self.state_dict()
        if restored["position"] == restored["samples"]:
            # The library would begin the next epoch. A loop that counts epochs itself would then
            # train one too many, so the pass ends first, as that of StatefulDataLoader does.
            self._core.set_epoch(int(restored["epoch"]))

    # ---- properties

    @property
    def samples(self) -> int:
        """The number of samples per epoch, over all ranks."""
        return self._core.samples()

    @property
    def dropped(self) -> int:
        """The number of samples that last_batch="drop" leaves out of an epoch, over all ranks."""
        return self._core.dropped()

    @property
    def pipeline(self) -> str:
        """The text of the pipeline with every parameter."""
        return self._core.pipeline()

    def stats(self) -> dict[str, Any]:
        """Counters since the loader was created, and those of the current or last epoch under the
        key "epoch": batches, samples, time that you waited for batches, time of the threads in
        each stage, memory, requests, cache hits."""
        return self._counters.read()

    def report(self, ranks: Sequence[Mapping[str, Any]] | None = None) -> str:
        """What limits the speed of the current or last epoch, and what to change, as text. It
        measures nothing, so that it can be called while training runs.

        ranks  the stats() or stats()["epoch"] of all ranks, to find the rank that others wait for
        """
        from . import _report  # not needed before somebody asks

        text = _report.text(self._counters.diagnosis())
        return text if ranks is None else text + _report.of_ranks(ranks)

    def metrics(self) -> str:
        """The counters as OpenMetrics text, which Prometheus reads."""
        return _stats.metrics(self.stats(), {"pack": self.dataset.path, "rank": str(self.rank)})

    def source_counts(self) -> list[int]:
        """How many samples of each source of a mixture were delivered, over all ranks and since
        the beginning of epoch 0. It follows from the position alone."""
        if not isinstance(self.dataset, Mix):
            raise InvalidError("source_counts: expected the loader of a penstock.mix")
        return self._core.source_counts()

    def bad_samples(self) -> list[BadSample]:
        """The samples that were replaced (the first 1,000)."""
        found: list[BadSample] = []
        while (row := self._core.bad_sample(len(found))) is not None:
            found.append(BadSample(*row))
        return found

    # ---- closing

    def close(self) -> None:
        """Stop the threads. Batches that you still hold stay valid."""
        _alive.discard(self._reference)
        if self._pid != os.getpid():
            return
        try:
            if self._stage is not None:
                self._stage.close()
            self._output.close()
        finally:
            self._core.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(_NO_PICKLE)

    def __repr__(self) -> str:
        if not hasattr(self, "_reference"):
            return "<penstock.Loader: could not be opened>"
        try:
            return f"<penstock.Loader {self.dataset.path}: {len(self)} batches, {self.pipeline}>"
        except ClosedError:
            return f"<penstock.Loader {self.dataset.path}: closed>"


def _check_info(fields: Iterable[str]) -> None:
    if "info" in fields:
        raise InvalidError(
            "return_info: a field has the name 'info', which batch.info needs; give it another "
            "name in the pipeline: {'details': [ops.source('info'), ...]}"
        )


def _check_functions(
    functions: Sequence[_python.Python], output: str, pin_memory: bool
) -> None:
    if not functions:
        return
    if output not in ("torch", "numpy"):
        raise InvalidError(f"output: expected 'torch' or 'numpy' with ops.python, found {output!r}")
    if pin_memory:
        raise InvalidError(
            "pin_memory: expected False with ops.python, whose results are not in the memory of "
            "the loader; pin them in transform="
        )
    _python.need_numpy()


def _word(name: str, value: object) -> str:
    """A number or a word of a state, as text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**128:
        return str(int(value))
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise InvalidError(
            f"state: {_check.shown(name)}: expected a number or a word, found {_check.shown(value)}"
        )
    return value


def _optional(name: str, value: int | None, high: int) -> int:
    """0 for None: the library then chooses the value."""
    return 0 if value is None else _check.integer(name, value, 1, high)


def _unknown(name: str) -> str:
    if name in _REPLACED:
        return f"Loader has no argument {name!r}: {_REPLACED[name]}"
    known = Loader.__init__.__code__.co_varnames[1 : Loader.__init__.__code__.co_argcount]
    names = [*known, *(Loader.__init__.__kwdefaults__ or ())]
    return f"Loader has no argument {name!r}{_check.nearest(name, names)}"
