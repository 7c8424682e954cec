# SPDX-License-Identifier: Apache-2.0
"""What cores, a disk and a network allow, and which of them decides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..experiment.sweep import label
from .configurations import Configuration

EQUAL = 1.02


@dataclasses.dataclass(frozen=True)
class Machine:
    """A described node. None: not given, so it limits nothing."""

    cores: int | None = None
    disk: float | None = None  # MB/s
    bandwidth: float | None = None  # MB/s of the network

    def is_described(self) -> bool:
        return self != Machine()


class Limit(NamedTuple):
    """Images per second that a part of the machine allows."""

    what: str
    rate: float


def limits(configuration: Configuration, machine: Machine) -> list[Limit]:
    """The lowest one first."""
    found = []
    if machine.cores is not None and configuration.cpu_ms > 0:
        found.append(Limit("cores", machine.cores * 1000 / configuration.cpu_ms))
    for what, megabytes in (("disk", machine.disk), ("network", machine.bandwidth)):
        if megabytes is not None:
            found.append(Limit(what, megabytes * 1e6 / configuration.image_bytes))
    return sorted(found, key=lambda limit: limit.rate)


def against(limit: Limit, rate: float) -> str:
    """'disk: 1,820/s, 39 % too slow' or 'cores: 8,320/s, 2.8 times the rate'."""
    share = limit.rate / rate
    much = f"{share:.2f} times the rate" if share >= 1 else f"{(1 - share) * 100:.0f} % too slow"
    return f"{limit.what}: {limit.rate:,.0f}/s, {much}"


def verdict(configuration: Configuration, rate: float) -> str:
    """Whether a measured rate reaches the one that is asked for."""
    mean, low, high = configuration.rate.mean, configuration.rate.low, configuration.rate.high
    if math.isnan(low):
        return "yes, by one turn" if mean >= rate else "no, by one turn"
    if low >= rate:
        return "yes"
    return "no" if high < rate else "within the noise"


def scaling(found: Sequence[Configuration]) -> list[str]:
    """How rates grew with the threads, where fewer and more of them were measured."""
    groups: dict[str, list[Configuration]] = {}
    for one in found:
        rest = {axis: value for axis, value in one.cell.items() if axis != "threads"}
        if "threads" in one.cell:
            groups.setdefault(label(rest), []).append(one)
    texts = []
    for name, group in groups.items():
        few, many = (pick(group, key=lambda one: int(one.cell["threads"])) for pick in (min, max))
        if few.cell["threads"] != many.cell["threads"]:
            texts.append(f"{name}: {many.rate.mean / few.rate.mean:.2f} times the rate with "
                         f"{many.cell['threads']} threads instead of {few.cell['threads']}")
    return texts


class Choice(NamedTuple):
    """The cheapest ones of several configurations; they may be the same."""

    fewest_cores: Configuration
    fewest_bytes: Configuration


def cheapest(found: Sequence[Configuration]) -> Choice | None:
    """Costs within EQUAL of the lowest one are equal; the other cost then decides."""
    if not found:
        return None

    def least(
        first: Callable[[Configuration], float], second: Callable[[Configuration], float]
    ) -> Configuration:
        lowest = min(map(first, found))
        return min((one for one in found if first(one) <= EQUAL * lowest), key=second)

    def cpu(one: Configuration) -> float:
        return one.cpu_ms

    def size(one: Configuration) -> float:
        return one.image_bytes

    return Choice(least(cpu, size), least(size, cpu))
