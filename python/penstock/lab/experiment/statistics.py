# SPDX-License-Identifier: Apache-2.0
"""Means with their uncertainty, and differences that are larger than the noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

CONFIDENCE = 0.95


class Summary(NamedTuple):
    """low and high bound the 95 % interval of the mean. With n = 1, sd, low and high are NaN. The
    interval of values that are not negative starts at 0 at the lowest."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


class Difference(NamedTuple):
    """The ratio of two means with its 95 % interval.

    larger_than_noise  the interval is known and does not contain 1
    """

    ratio: float
    low: float
    high: float
    larger_than_noise: bool


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (Lentz's method)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or tiny)
    value = d
    for m in range(1, 500):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / ((1.0 + factor * d) or tiny)
            c = (1.0 + factor / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    return front * _beta_fraction(a, b, x) / a


@functools.lru_cache(maxsize=1024)
def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t: |t| is below it with this probability."""
    low, high = 0.0, 1e8
    for _ in range(100):
        t = (low + high) / 2
        outside = _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
        low, high = (t, high) if outside > 1.0 - confidence else (low, t)
    return (low + high) / 2


def _mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def summary(values: Sequence[float]) -> Summary:
    """Mean, standard deviation and 95 % interval by Student's t."""
    n = len(values)
    if n == 0:
        raise ValueError("expected at least one value")
    if n == 1:
        return Summary(1, float(values[0]), math.nan, math.nan, math.nan)
    mean, variance = _mean_and_variance(values)
    half = t_quantile(n - 1) * math.sqrt(variance / n)
    low = mean - half if min(values) < 0 else max(mean - half, 0.0)
    return Summary(n, mean, math.sqrt(variance), low, mean + half)


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The ratio of a's mean to b's, both of positive values.

    The interval is that of the difference of logarithms (Welch's degrees of freedom, the delta
    method for the variance of a logarithm), so swapping a and b inverts the answer.
    """
    if not a or not b or min(*a, *b) <= 0:
        raise ValueError("expected positive values on both sides")
    if len(a) < 2 or len(b) < 2:
        ratio = (math.fsum(a) / len(a)) / (math.fsum(b) / len(b))
        return Difference(ratio, math.nan, math.nan, False)
    (mean_a, var_a), (mean_b, var_b) = _mean_and_variance(a), _mean_and_variance(b)
    ratio = mean_a / mean_b
    part_a, part_b = var_a / len(a) / mean_a**2, var_b / len(b) / mean_b**2
    total = part_a + part_b
    if total == 0.0:
        return Difference(ratio, ratio, ratio, ratio != 1.0)
    freedom = total**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    spread = math.exp(t_quantile(freedom) * math.sqrt(total))
    low, high = ratio / spread, ratio * spread
    return Difference(ratio, low, high, not low <= 1.0 <= high)
