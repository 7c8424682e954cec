# SPDX-License-Identifier: Apache-2.0
"""Many nodes and a remote store, by `penstock simulate`."""

from __future__ import annotations

from typing import NamedTuple

from .. import program
from .configurations import Configuration
from .limits import Machine

EFFORT_S = 5
# Ranks may wait this share of the time.
WAITING_PERCENT = 2.0


class Simulated(NamedTuple):
    """Images per second of one node, and how long its training waits."""

    rate: float
    waiting_percent: float
    first_batch_seconds: float
    command: str

    def reaches(self) -> bool:
        return self.waiting_percent <= WAITING_PERCENT


def arguments(
    one: Configuration, machine: Machine, rate: float, samples: int
) -> list[str]:
    """Of `penstock simulate`, with one rank on each node that trains at this rate."""
    words = ["simulate", "--nodes", str(machine.nodes), "--ranks", "1",
             "--samples", str(samples), "--sample-bytes", str(max(1, round(one.image_bytes))),
             "--batch", str(one.batch), "--step-ms", f"{one.batch / rate * 1000:.3f}",
             "--effort", str(EFFORT_S)]
    if machine.cores is not None:
        words += ["--decode-ms", f"{one.batch * one.cpu_ms / machine.cores:.3f}"]
    if machine.latency is not None:
        words += ["--latency-ms", f"{machine.latency:g}"]
    if machine.bandwidth is not None:
        words += ["--node-gbit", f"{machine.bandwidth * 8 / 1000:g}"]
    return words


def simulate(one: Configuration, machine: Machine, rate: float, samples: int) -> Simulated:
    words = arguments(one, machine, rate, samples)
    told = program.output_json(*words, "--json")
    training = told["training"]
    return Simulated(
        training["samples_per_second"] / machine.nodes, training["waiting_percent"],
        training["first_batch_median_seconds"], "penstock " + " ".join(words),
    )
