# SPDX-License-Identifier: Apache-2.0
"""Advice as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from .. import tables
from ..experiment import results
from .configurations import Configuration, with_most_threads
from .limits import Choice, Machine, against, cheapest, limits, scaling, verdict


def machine_name(machine: Machine) -> str:
    parts = [] if machine.cores is None else [f"{machine.cores} cores"]
    if machine.disk is not None:
        parts.append(f"a disk of {machine.disk:g} MB/s")
    if machine.bandwidth is not None:
        parts.append(f"a network of {machine.bandwidth:g} MB/s")
    return ", ".join(parts)


def cost(one: Configuration, rate: float, samples: int) -> str:
    return (f"{one.name} ({one.cores_for(rate):.1f} cores busy, {one.image_bytes / 1000:,.1f} "
            f"kB/image, {one.image_bytes * samples / 1e9:,.1f} GB for {samples:,} images)")


def chosen(choice: Choice, rate: float, samples: int) -> list[str]:
    cores, size = choice
    if cores.cell == size.cell:
        return [f"Cheapest, by cores and by bytes: {cost(cores, rate, samples)}."]
    return [f"Fewest cores: {cost(cores, rate, samples)}.",
            f"Fewest bytes: {cost(size, rate, samples)}."]


def measured(found: Sequence[Configuration], rate: float, samples: int) -> str:
    """What the reports show for the machine they were measured on."""
    here = found[0].machine
    rows = [[one.name, f"{one.rate.mean:,.0f} ({results.interval(one.rate)})",
             f"{one.image_bytes / 1000:,.1f}", f"{one.cpu_ms:.3f}",
             one.bottleneck, verdict(one, rate)]
            for one in sorted(found, key=lambda one: -one.rate.mean)]
    header = ["configuration", "images/s (95 % interval)", "kB/image", "CPU s / 1,000",
              "bottleneck", f"reaches {rate:,.0f}/s"]
    lines = [f"## Measured: {here.get('cpu', 'unknown')}, {here.get('cores', '?')} cores", "",
             tables.markdown(header, rows)]
    reached = [one for one in found if verdict(one, rate).startswith("yes")]
    choice = cheapest(reached)
    if choice is not None:
        return "\n".join([*lines, *chosen(choice, rate, samples)])
    best = max(found, key=lambda one: one.rate.mean)
    return "\n".join([*lines, (
        f"No configuration reaches {rate:,.0f} images/s. The fastest one, {best.name}, has "
        f"{best.rate.mean / rate * 100:.0f} % of it and is limited by: {best.bottleneck}. At its "
        f"CPU time the rate takes {best.cores_for(rate):.1f} such cores and "
        f"{best.megabytes_for(rate):,.0f} MB/s (extrapolated).")])


class Extrapolation:
    """What a described machine would reach with the measured CPU time and bytes."""

    def __init__(
        self, found: Sequence[Configuration], machine: Machine, rate: float, samples: int
    ) -> None:
        self.machine, self.rate, self.samples = machine, rate, samples
        self.scaling = scaling(found)
        self.found = with_most_threads(found)

    def allowed(self, one: Configuration) -> bool:
        return all(limit.rate >= self.rate for limit in limits(one, self.machine))

    def _row(self, one: Configuration) -> list[str]:
        allowed = limits(one, self.machine)
        decides = against(allowed[0], self.rate) if allowed else "no limit was described"
        return [one.name, f"{one.cores_for(self.rate):.1f}",
                f"{one.megabytes_for(self.rate):,.0f}", decides,
                "yes" if self.allowed(one) else "no"]

    def text(self) -> str:
        lines = [f"## Extrapolated: {machine_name(self.machine)}", ""]
        order = sorted(self.found, key=lambda one: (one.cpu_ms, one.image_bytes))
        header = ["configuration", "cores needed", "MB/s needed", "decided by",
                  f"reaches {self.rate:,.0f}/s"]
        lines.append(tables.markdown(header, [self._row(one) for one in order]))
        if self.scaling:
            lines += ["Measured scaling, for the assumption that more cores help:", "",
                      *(f"- {text}" for text in self.scaling), ""]
        choice = cheapest([one for one in self.found if self.allowed(one)])
        if choice is not None:
            return "\n".join([*lines, *chosen(choice, self.rate, self.samples)])
        return "\n".join([*lines, self._nothing()])

    def _nothing(self) -> str:
        best = max(self.found, key=lambda one: limits(one, self.machine)[0].rate)
        decides = against(limits(best, self.machine)[0], self.rate)
        return (f"No configuration reaches {self.rate:,.0f} images/s. The closest one, {best.name},"
                f" is limited by the {decides}. It takes {best.cores_for(self.rate):.1f} "
                f"cores and {best.megabytes_for(self.rate):,.0f} MB/s.")


MEASURED = """Measured: images/s, CPU time and stored bytes of every configuration, on the machine
above. A rate counts as reached when its 95 % interval is above it.
"""
EXTRAPOLATED = """Extrapolated: all rates of the described machine. They assume that its cores are
as fast as those measured, that loaders scale to all of them, and that the disk and the network
reach the bandwidth given. Measure on that machine before you rely on them.
"""
