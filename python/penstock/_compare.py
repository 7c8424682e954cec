# SPDX-License-Identifier: Apache-2.0
"""Compare what defines the order with the other ranks, once, before the first batch of a loader.

Every rank publishes one line. Rank 0 reads those of all ranks; the others read that of rank 0, so
that the number of requests grows with the ranks and not with their square."""

from __future__ import annotations

import _thread
import os
import socket
import sys
import time
import urllib.parse
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Union, cast

from . import _check
from ._error import InvalidError, ReadWriteError, TimeoutError

Gather = Callable[[str], "list[str]"]
How = Union[None, bool, Gather, str, "os.PathLike[str]"]

_PREFIX = "penstock/compare_ranks"
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.001, 0.1  # between two looks at what the others published
_MOST_SHOWN = 16

_lock = _thread.allocate_lock()
# Loaders of this process that were compared, by channel, number of ranks, and rank: a process can
# load for several ranks, and have another rank in a loader for validation.
_numbers: dict[tuple[str, int, int], int] = {}
_warned: list[bool] = []


class _Channel(Protocol):
    """Where ranks publish their lines."""

    name: str  # loaders are counted by it
    advice: str  # on a line of this rank that another process has published

    def put(self, key: str, text: str) -> str:
        """Publishes a line, unless the key has one. Returns the line of the key."""
        ...

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        """The lines of those keys that have one. Does not wait."""
        ...


# ---- the store of torch.distributed


class _Store:
    """The key-value store that torch.distributed was initialized with. There is no collective."""

    name = "torch.distributed"
    advice = "If they belong to different jobs, pass compare_ranks=False or a function"

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, key: str, text: str) -> str:
        return str(self._call(lambda: self._store.compare_set(key, "", text).decode()))

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = self._call(
            lambda: {
                key: self._store.get(key).decode() for key in keys if self._store.check([key])
            }
        )
        return found

    def _call(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except RuntimeError as error:  # those of torch.distributed are RuntimeErrors
            raise ReadWriteError(
                "compare_ranks: the key-value store of torch.distributed failed, perhaps because "
                f"another rank has ended: {error}"
            ) from error


def _torch_store(world: int) -> _Store | None:
    """None if this process has no group that could have all ranks of the loader."""
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    if dist.get_world_size() < world:
        return None
    store = dist.distributed_c10d._get_default_store()
    if not isinstance(store, (dist.TCPStore, dist.FileStore, dist.HashStore, dist.PrefixStore)):
        return None  # of MPI, or of a group that is only a test's
    return _Store(dist.PrefixStore(_PREFIX, store))


# ---- a shared directory


def _run_id() -> str:
    """Of this start of the job, so that the files of an earlier one are not read. Empty if the
    launcher does not name it."""
    environ = os.environ
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    parts = [elastic if elastic != "none" else ""]
    if not parts[0]:
        # Nodes that run torchrun can be steps of their own.
        names = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", *(() if elastic else ("SLURM_STEP_ID",)))
        parts = [environ.get(name, "") for name in names]
    parts.append(environ.get("TORCHELASTIC_RESTART_COUNT", ""))
    return "-".join(urllib.parse.quote(part, safe="") for part in parts if part)


class _Directory:
    """A directory that all ranks share. A file is complete as soon as it is visible."""

    advice = (
        "If the directory has files of an earlier run, use one of this run: "
        "compare_ranks=f'/shared/order-{run}'"
    )

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = path
        self._run = _run_id()

    def _name(self, key: str) -> str:
        return ".".join(filter(None, (self._run, key.replace("/", "."))))

    def put(self, key: str, text: str) -> str:
        final = os.path.join(self._path, self._name(key))
        unique = f"{socket.gethostname()}.{os.getpid()}.{_thread.get_ident()}"
        temporary = os.path.join(self._path, f".{self._name(key)}.{unique}")
        try:
            os.makedirs(self._path, exist_ok=True)
            with open(temporary, "x", encoding="utf-8") as file:
                file.write(text)
            try:
                os.link(temporary, final)  # fails if the file exists
            except FileExistsError:
                pass
            except OSError:
                if not os.path.exists(final):
                    os.replace(temporary, final)  # the file system has no links
            finally:
                if os.path.lexists(temporary):
                    os.unlink(temporary)
            with open(final, encoding="utf-8") as file:
                return file.read()
        except OSError as error:
            raise self._failed(error) from error

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        found = {}
        try:
            # Over NFS, a list of the directory is newer than what is cached of one name.
            names = set(os.listdir(self._path))
            for key in keys:
                if self._name(key) in names:
                    path = os.path.join(self._path, self._name(key))
                    with open(path, encoding="utf-8") as file:
                        found[key] = file.read()
        except OSError as error:
            raise self._failed(error) from error
        return found

    def _failed(self, error: OSError) -> ReadWriteError:
        return ReadWriteError(
            f"compare_ranks: cannot use the directory {self._path!r}: {error.strerror}. All ranks "
            "need one that they can write to",
            os_errno=error.errno or 0,
        )


# ---- differences


def _words(text: str) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in text.split())


def _difference(mine: str, theirs: str) -> tuple[str, str]:
    """The words that differ, of both. The hash differs whenever another word does."""
    a, b = _words(mine), _words(theirs)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    names = [name for name in names if name != "hash"] or names
    return tuple(  # type: ignore[return-value]
        ", ".join(f"{name}={words[name]}" if name in words else f"no {name}" for name in names)
        for words in (a, b)
    )


def _refuse(rank: int, mine: str, other: int, theirs: str) -> InvalidError:
    own, found = _difference(mine, theirs)
    hint = ""
    if "subset=" in own + found:
        hint = " (subset is a hash of subset, weights, buckets, lengths and frames)"
    if other == rank:
        hint += f". Two processes have rank {rank}, and their batches must be equal"
    return InvalidError(
        f"compare_ranks: the order differs between ranks: rank {rank} has {own}; "
        f"{'another process of rank' if other == rank else 'rank'} {other} has {found}{hint}. Some "
        "samples would be delivered twice and others never. Create the loader with the same pack "
        "and settings on every rank, and iterate over several loaders in the same order"
    )


def _shown(ranks: list[int]) -> str:
    """As "rank 3", or "ranks 1, 2 and 40 more"."""
    text = ", ".join(map(str, ranks[:_MOST_SHOWN]))
    more = f" and {len(ranks) - _MOST_SHOWN} more" if len(ranks) > _MOST_SHOWN else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {text}{more}"


# ---- one comparison


def _warn() -> None:
    """Once per process."""
    with _lock:
        if _warned:
            return
        _warned.append(True)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        "penstock: the ranks did not compare their orders, because torch.distributed is not "
        "initialized. If their settings differ, samples are lost. Pass compare_ranks=, a function "
        "that gathers a text of all ranks or a shared directory, or False if they are equal",
        stacklevel=level,
    )


class Comparison:
    """Of one loader. If it was interrupted or failed, it can be run again."""

    def __init__(self, how: How, rank: int, world: int, seconds: float) -> None:
        self._how, self._rank, self._world, self._seconds = how, rank, world, seconds
        self._channel: _Channel | None = None
        self._number = 0

    def run(self, mine: str, check: Callable[[], object]) -> None:
        """Compares a line of key=value words. `check` raises if the loader was closed."""
        if callable(self._how):
            return self._gather(mine, self._how)
        if self._channel is None:
            self._channel = (
                _torch_store(self._world)
                if self._how is None
                else _Directory(cast(str, self._how))
            )
            if self._channel is None:
                return _warn()
            # All ranks begin their loaders in the same order, so they agree on the number.
            which = self._channel.name, self._world, self._rank
            with _lock:
                self._number = _numbers.get(which, 0)
                _numbers[which] = self._number + 1
        self._publish(self._channel, mine)
        self._wait(self._channel, mine, check)

    def _key(self, rank: int) -> str:
        return f"{self._world}/{self._number}/{rank}"

    def _publish(self, channel: _Channel, mine: str) -> None:
        """Processes that load the same batches, of tensor parallelism, have the same rank."""
        found = channel.put(self._key(self._rank), mine)
        if found != mine:
            error = _refuse(self._rank, mine, self._rank, found)
            raise InvalidError(f"{error}. {channel.advice}")

    def _wait(self, channel: _Channel, mine: str, check: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._seconds
        ranks = range(1, self._world) if self._rank == 0 else (0,)
        missing = {self._key(rank): rank for rank in ranks}
        pause = _SHORTEST_SECONDS
        while True:
            for key, text in channel.get(missing).items():
                rank = missing.pop(key)
                if text != mine:
                    raise _refuse(self._rank, mine, rank, text)
            if not missing:
                return
            check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._late(list(missing.values()))
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_SECONDS)

    def _late(self, missing: list[int]) -> TimeoutError:
        return TimeoutError(
            f"compare_ranks: {_shown(missing)} of {self._world} did not request a batch within "
            f"timeout={self._seconds:g} seconds of rank {self._rank}. Every rank has to iterate "
            "over the loader; if only some do, pass compare_ranks=False"
        )

    def _gather(self, mine: str, gather: Gather) -> None:
        own = f"rank={self._rank} {mine}"
        texts = gather(own)
        if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                "compare_ranks: expected the function to return a list with the text of each rank, "
                f"found {_check.shown(texts)}"
            )
        ranks: dict[int, str] = {}
        for text in texts:
            head, _, theirs = text.partition(" ")
            name, _, number = head.partition("=")
            if name != "rank" or not number.isdecimal():
                raise InvalidError(
                    f"compare_ranks: expected texts of Loader, found {_check.shown(text)}"
                )
            ranks.setdefault(int(number), theirs)
            if theirs != mine:
                raise _refuse(self._rank, mine, int(number), theirs)
        missing = [rank for rank in range(self._world) if rank not in ranks]
        if missing:
            raise InvalidError(
                f"compare_ranks: the function returned no text of {_shown(missing)} of "
                f"{self._world}; expected those of all ranks"
            )


def choose(how: object, rank: int, world: int, seconds: float) -> Comparison | None:
    """None if there is nothing to compare."""
    chosen: How
    if how is None or callable(how):
        chosen = cast(How, how)
    elif _check.is_boolean(how) and not _check.flag("compare_ranks", how):
        return None
    elif isinstance(how, (str, os.PathLike)):
        chosen = _check.path(how, "compare_ranks")
    else:
        raise TypeError(
            "compare_ranks: expected None, False, a function or the path of a directory, found "
            f"{_check.shown(how)}"
        )
    return Comparison(chosen, rank, world, seconds) if world > 1 else None


# Words of a state that do not define the order: where the run is, and what it does with samples.
_OTHER_WORDS = ("version", "epoch", "position", "place", "step", "pipeline")


def settings(state: str, more: Mapping[str, object]) -> str:
    """What has to be equal on all ranks, as one line."""
    words = [word for word in state.split() if word.partition("=")[0] not in _OTHER_WORDS]
    return " ".join([*words, *(f"{name}={value}" for name, value in more.items())])
