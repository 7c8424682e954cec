# SPDX-License-Identifier: Apache-2.0
"""A simulated accelerator that takes batches of a loader, and the search for how many are fed.

N accelerators are one that is N times as fast: its step takes 1 / N of the time. So N need not be
a whole number. The accelerator utilization (AU) is the number of steps times the time of a step,
divided by the elapsed time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .workloads import Workload

PRECISION = 0.01  # relative width at which the search ends
MOST_POINTS = 9
PREFETCH = 4  # batches that the loader prepares in advance


class Point(NamedTuple):
    """One measurement: so many accelerators."""

    accelerators: float
    utilization: float
    seconds: float
    samples: int
    cpu: float  # seconds of processor time of this process

    @property
    def cores(self) -> float:
        return self.cpu / self.seconds


def consume(batches: Iterator[Any], workload: Workload, accelerators: float,
            seconds: float) -> Point:
    """Take batches for about SECONDS. The clock starts with an empty queue: batches that were
    prepared while nobody took any would count as fed."""
    step = workload.step / accelerators if accelerators else 0.0
    for _ in range(PREFETCH + 1):
        next(batches)
    steps = 0
    cpu, began = time.process_time(), time.perf_counter()
    elapsed = 0.0
    while elapsed < seconds or steps < 3:
        next(batches)
        time.sleep(step)
        steps += 1
        elapsed = time.perf_counter() - began
    return Point(accelerators, min(1.0, steps * step / elapsed), elapsed, steps * workload.batch,
                 time.process_time() - cpu)


def search(measure: Callable[[float], Point], line: float, guess: float) -> list[Point]:
    """Measure until the largest number of accelerators with an AU of at least LINE is known
    within PRECISION. GUESS is a number near it; the answer is the last of the points that reach
    the line, see fed()."""
    points = [measure(guess)]
    low, high = (guess, 0.0) if points[0].utilization >= line else (0.0, guess)
    while len(points) < MOST_POINTS and not (low and high and high - low <= PRECISION * high):
        if not high:
            tried = low * 1.1
        else:
            tried = high * 0.9 if not low else (low + high) / 2
        points.append(measure(tried))
        if points[-1].utilization >= line:
            low = max(low, tried)
        else:
            high = min(high, tried) if high else tried
    return points


def fed(points: list[Point], line: float) -> Point | None:
    """The measurement with the most accelerators that reaches the line."""
    reached = [point for point in points if point.utilization >= line]
    return max(reached, default=None)
