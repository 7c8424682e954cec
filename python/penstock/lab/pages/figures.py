# SPDX-License-Identifier: Apache-2.0
"""Figures as text."""

from __future__ import annotations

import math

from ..experiment.statistics import Summary


def number(value: float) -> str:
    """Four digits that count, groups of three; "-" if it is unknown."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def interval(found: Summary) -> str:
    """The 95 % interval."""
    if math.isnan(found.low):
        return "-"
    return f"{number(found.low)} to {number(found.high)}"
