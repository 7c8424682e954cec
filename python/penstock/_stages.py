# SPDX-License-Identifier: Apache-2.0
"""Change the pack, the image size or the pipeline at given epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from . import _check
from ._error import InvalidError
from ._loader import Loader, _Sampler


class Stages:
    """A loader whose settings change at given epochs, made by penstock.stages. It is used like a
    Loader. `loader` is the Loader of the current stage, with stats(), report() and the rest."""

    batch_sampler: None = None

    def __init__(self, starts: list[int], settings: list[dict[str, Any]]) -> None:
        self._starts, self._settings = starts, settings
        # All of them now: a mistake in the last stage is not found after days of training.
        self._loaders: list[Loader | None] = [Loader(**each) for each in settings]
        self._stage = 0

    def _select(self, epoch: int) -> Loader:
        """The loader for an epoch. That of the stage before is closed, so that two do not use
        threads and memory at the same time."""
        stage = sum(start <= epoch for start in self._starts) - 1
        before = self._loaders[self._stage]
        if stage != self._stage and before is not None:
            before.close()
            self._loaders[self._stage] = None
        self._stage = stage
        loader = self._loaders[stage]
        if loader is None:
            loader = self._loaders[stage] = Loader(**self._settings[stage])
        return loader

    def _now(self) -> Loader:
        """The loader of the current epoch, or of the next one between passes."""
        loader = self._select(self._starts[self._stage])
        epoch = int(loader.state_dict()["epoch"])  # it rises when a pass has ended, not before
        now = self._select(epoch)
        if now is not loader:
            now.set_epoch(epoch)
        return now

    @property
    def loader(self) -> Loader:
        """The Loader of the current stage."""
        return self._now()

    def __len__(self) -> int:
        """The number of batches of the current epoch, or of the next one between passes."""
        return len(self._now())

    def __iter__(self) -> Iterator[Any]:
        """Start a pass over an epoch, in the stage that it belongs to."""
        return iter(self._now())

    @property
    def epoch(self) -> int:
        """The current epoch, or the next one between passes."""
        return self._now().epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass, as Loader.set_epoch does."""
        self._select(_check.integer("epoch", epoch, 0, 2**63 - 1)).set_epoch(epoch)

    @property
    def sampler(self) -> _Sampler:
        """For frameworks that call loader.sampler.set_epoch(epoch)."""
        return _Sampler(self)

    def _rank_samples(self) -> int:
        return self._now()._rank_samples()

    @property
    def batch_size(self) -> int:
        """Samples per batch of this rank, in the current stage."""
        return self._now().batch_size

    @property
    def samples(self) -> int:
        """The number of samples per epoch, over all ranks, in the current stage."""
        return self._now().samples

    def state_dict(self) -> dict[str, int | str]:
        """The position: the state of the current stage's Loader. Its epoch tells the stage."""
        return self._now().state_dict()

    def load_state_dict(self, state: Mapping[str, int | str], strict: bool = True) -> None:
        """Resume at the position of a state_dict, as Loader.load_state_dict does."""
        epoch = state.get("epoch") if isinstance(state, Mapping) else None
        known = isinstance(epoch, int) and 0 <= epoch < 2**63
        before = self._now().state_dict()
        stage = self._stage
        try:
            loader = self._select(cast(int, epoch)) if known else self._now()
            loader.load_state_dict(state, strict)  # also says what is wrong with it
        except Exception:
            if self._stage != stage:  # a state that is refused changes nothing
                self._select(self._starts[stage]).load_state_dict(before)
            raise

    def close(self) -> None:
        """Stop the threads. Batches that you still hold stay valid."""
        for loader in self._loaders:
            if loader is not None:
                loader.close()

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.stages from epochs {self._starts}: now {self._loaders[self._stage]!r}>"


def _parse(number: int, stage: object) -> tuple[int, Mapping[str, Any]]:
    if not isinstance(stage, (tuple, list)) or len(stage) != 2:
        raise TypeError(
            f"stages: expected (first epoch, dict of arguments), found {_check.shown(stage)}"
        )
    first = _check.integer(f"stages: first epoch of stage {number}", stage[0], 0, 2**63 - 1)
    if not isinstance(stage[1], Mapping) or not all(isinstance(name, str) for name in stage[1]):
        raise TypeError(f"stages: expected a dict of arguments, found {_check.shown(stage[1])}")
    return first, stage[1]


def stages(stages: Sequence[tuple[int, Mapping[str, Any]]], **settings: Any) -> Stages:
    """A loader that changes at given epochs, for example to train with small images first.

    stages    (first epoch, arguments of Loader) of each stage; the first stage begins at epoch 0
    settings  arguments of Loader for all stages, for example batch_size=256, shuffle=True

    The result is used like a Loader, and its state resumes in any stage. All stages are opened at
    once, so that errors are raised before training; only the current one has threads and batches.
    """
    if not isinstance(stages, (list, tuple)):
        raise TypeError(f"stages: expected a list, found {_check.shown(stages)}")
    parsed = [_parse(number, stage) for number, stage in enumerate(stages)]
    starts = [first for first, _ in parsed]
    if not starts or starts[0] != 0 or sorted(set(starts)) != starts:
        raise InvalidError(
            f"stages: expected first epochs that begin with 0 and rise, found "
            f"{_check.shown(starts)}"
        )
    return Stages(starts, [{**settings, **given} for _, given in parsed])
