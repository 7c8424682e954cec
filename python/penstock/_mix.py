# SPDX-License-Identifier: Apache-2.0
"""Mixtures of packs."""

from __future__ import annotations

import array
import os
import sys
from collections.abc import Sequence
from typing import Any, Union

from . import _check, _core
from ._error import InvalidError
from ._pack import Pack

_STOPS = {"first": 0, "all": 1}
_STEPS = 2
_UNITS = {"samples": 0, "steps": 1, "epochs": 2}
_MOST_SOURCES = 1024
_MOST_STAGES = 64

Source = Union[Pack, "Mix", str, os.PathLike[str]]


class Mix:
    """Several packs with weights, made by penstock.mix. Pass it to Loader in place of a pack.

    packs    the pack of each source; sources of nested mixes are listed one by one
    weights  the weight of each source, as a part of 1
    """

    def __init__(
        self, packs: list[Pack], stages: list[tuple[int, list[float]]], unit: str,
        stop: int, steps: int, field: str,
    ) -> None:
        self.packs = tuple(packs)
        self.weights = tuple(stages[0][1])
        self._stages = stages
        self._unit, self._stop, self._steps, self._field = unit, stop, steps, field
        rest = len(packs) - 1
        self.path = packs[0].path + (f" and {rest} more" if rest else "")

    def __len__(self) -> int:
        """The number of samples in all sources."""
        return sum(len(pack) for pack in self.packs)

    def _settings(self) -> tuple[tuple[_core.Pack, ...], bytes, int, bytes, int, int, int, str]:
        """For the library."""
        weights = [weight for _, weights in self._stages for weight in weights]
        return (
            tuple(pack._core for pack in self.packs),
            array.array("d", weights).tobytes(),
            len(self._stages),
            array.array("Q", [start for start, _ in self._stages]).tobytes(),
            _UNITS[self._unit],
            self._stop,
            self._steps,
            self._field,
        )

    def _sum(self, method: str) -> dict[str, int]:
        total: dict[str, int] = {}
        for pack in dict.fromkeys(self.packs):
            for name, value in getattr(pack, method)().items():
                total[name] = total.get(name, 0) + value
        return total

    def cache_stats(self) -> dict[str, int]:
        """The sums of cache_stats() of all packs."""
        return self._sum("cache_stats")

    def remote_stats(self) -> dict[str, int]:
        """The sums of remote_stats() of all packs."""
        return self._sum("remote_stats")

    def __repr__(self) -> str:
        return f"<penstock.mix of {len(self.packs)} sources: {self.path}>"


def _parse(number: int, source: object) -> tuple[Any, float]:
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise TypeError(f"mix: sources: expected (pack, weight), found {_check.shown(source)}")
    return source[0], _check.real(
        f"mix: weight of source {number}", source[1], 0, sys.float_info.max
    )


def _check_zeros(stages: Sequence[tuple[int, Sequence[float]]]) -> None:
    """A source with a weight of 0 has to begin later."""
    for number, of_stages in enumerate(zip(*(weights for _, weights in stages))):
        if not any(of_stages):
            raise InvalidError(
                f"mix: weight of source {number}: expected a number above 0, found 0; leave the "
                "source out, or use schedule= to begin with it later"
            )
    if not any(stages[0][1]):
        raise InvalidError("mix: expected at least one weight above 0, found none")


def _open(number: int, pack: Any) -> Pack | Mix:
    if isinstance(pack, Mix) and len(pack._stages) > 1:
        raise InvalidError(f"mix: source {number}: a mix with a schedule cannot be nested")
    if isinstance(pack, (Pack, Mix)):
        return pack
    return Pack(_check.path(pack, f"mix: source {number}"))


def _flatten(given: list[Pack | Mix], weights: Sequence[float]) -> list[float]:
    """The weights of all sources, as parts of 1. The weight of a mix is divided among its
    sources."""
    largest = max(weights)
    total = sum(weight / largest for weight in weights)
    flat: list[float] = []
    for pack, weight in zip(given, weights):
        part = weight / largest / total
        flat += [part * inner for inner in pack.weights] if isinstance(pack, Mix) else [part]
    return flat


def _stage(number: int, stage: object, n: int) -> tuple[int, list[float]]:
    if not isinstance(stage, (tuple, list)) or len(stage) != 2:
        raise TypeError(f"schedule: expected (start, weights), found {_check.shown(stage)}")
    start = _check.integer(f"schedule: entry {number}: the start", stage[0], 1, 2**63 - 1)
    if not isinstance(stage[1], (tuple, list)) or len(stage[1]) != n:
        raise InvalidError(
            f"schedule: from {start}: expected {n} weights, one for each source of the list, "
            f"found {_check.shown(stage[1])}"
        )
    weights = [
        _check.real(f"schedule: from {start}: weight {i}", weight, 0, sys.float_info.max)
        for i, weight in enumerate(stage[1])
    ]
    if not any(weights):
        raise InvalidError(f"schedule: from {start}: expected at least one weight above 0")
    return start, weights


def _schedule(schedule: Any, n: int) -> list[tuple[int, list[float]]]:
    if not isinstance(schedule, (tuple, list)):
        raise TypeError(
            f"schedule: expected a list of (start, weights), found {_check.shown(schedule)}"
        )
    stages = [_stage(number, stage, n) for number, stage in enumerate(schedule)]
    starts = [start for start, _ in stages]
    if sorted(set(starts)) != starts or len(starts) >= _MOST_STAGES:
        raise InvalidError(
            f"schedule: expected at most {_MOST_STAGES - 1} starts that rise, found "
            f"{_check.shown(starts)}"
        )
    return stages


def mix(
    sources: Sequence[tuple[Source, float]],
    *,
    stop: str | int = "first",
    schedule: Sequence[tuple[int, Sequence[float]]] = (),
    unit: str = "steps",
    field: str = "source",
) -> Mix:
    """A mixture of packs, which Loader takes in place of a pack.

    sources   (pack, weight) of each source. The pack is a Pack, its path or its URL, or a mix. A
              pack can occur several times. A source whose weight is 0 begins later, with schedule.
    stop      when an epoch ends: "first": before the first source begins its second epoch; "all":
              when all samples of all sources were delivered; or a number of steps
    schedule  (start, weights) of each change: from `start` on, the sources have these weights, one
              number of 0 or more for each source of the list
    unit      what the starts count from the beginning of epoch 0: "steps", "epochs", or "samples"
              over all ranks. A step is batch size x ranks samples.
    field     name of the batch field with the number of each sample's source; it is the last field

    Among the first p samples, each source has p times its part of the weights, rounded down or up.
    Each source has its own order and its own epochs. The pipeline applies to all sources, and the
    fields that it uses must have the same types in all packs. A mixture uses the threads and the
    memory of one loader.
    """
    if not isinstance(sources, (list, tuple)):
        raise TypeError(
            f"mix: sources: expected a list of (pack, weight), found {_check.shown(sources)}"
        )
    if not sources:
        raise InvalidError("mix: sources: expected at least one (pack, weight), found none")
    parsed = [_parse(number, source) for number, source in enumerate(sources)]
    steps = 0
    if isinstance(stop, str):
        kind = _STOPS[_check.word("stop", stop, _STOPS)]
    else:
        kind, steps = _STEPS, _check.integer("stop", stop, 1, 2**63 - 1)
    by_source = [(0, [weight for _, weight in parsed]), *_schedule(schedule, len(parsed))]
    _check_zeros(by_source)
    _check.word("unit", unit, _UNITS)
    if not isinstance(field, str):
        raise TypeError(f"field: expected a name, found {_check.shown(field)}")
    if not field or not field.isprintable():
        raise InvalidError(f"field: expected a name, found {_check.shown(field)}")
    given = [_open(number, pack) for number, (pack, _) in enumerate(parsed)]
    stages = [(start, _flatten(given, weights)) for start, weights in by_source]
    packs = [
        each for pack in given for each in (pack.packs if isinstance(pack, Mix) else (pack,))
    ]
    if len(packs) > _MOST_SOURCES:
        raise InvalidError(f"mix: expected at most {_MOST_SOURCES} sources, found {len(packs)}")
    return Mix(packs, stages, unit, kind, steps, field)
