# SPDX-License-Identifier: Apache-2.0
"""Figures from rounds: medians, ratios with their spread, who won, cores for an accelerator."""

from __future__ import annotations

import math
import statistics
from typing import Any

LEAST_ROUNDS = 3  # for a winner
# One simulated H100 that trains ResNet-50 in MLPerf Storage takes 400 images every 0.224 s.
STEP_IMAGES, STEP_SECONDS, UTILIZATION = 400, 0.224, 0.9


def ratio(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """Of the medians, and the lowest and highest ratio of one round. The n-th rates of both sides
    were measured one after the other."""
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"expected as many rounds on both sides, found {len(ours)}, {len(theirs)}")
    pairs = [a / b for a, b in zip(ours, theirs)]
    return {"ratio": statistics.median(ours) / statistics.median(theirs),
            "low": min(pairs), "high": max(pairs), "rounds": len(pairs)}


def verdict(comparison: dict[str, Any]) -> str:
    """'faster', 'slower', or 'no winner' when the rounds differ by more than the two sides do, or
    are too few to differ at all.

    Taken from the winner's side, so that swapping the sides swaps the answer."""
    middle, low, high = (comparison[key] for key in ("ratio", "low", "high"))
    if comparison["rounds"] < LEAST_ROUNDS:
        return "no winner"
    if middle >= 1:
        return "faster" if high - low < middle - 1 else "no winner"
    return "slower" if 1 / low - 1 / high < 1 / middle - 1 else "no winner"


def reached(comparison: dict[str, Any], at_least: float) -> bool:
    enough = bool(comparison["ratio"] >= at_least)
    return enough and (at_least <= 1 or verdict(comparison) == "faster")


def cores_for_accelerator(images_per_second: float, cores: int) -> float:
    """How many such cores feed one simulated accelerator, from what `cores` of them feed."""
    needed = UTILIZATION * STEP_IMAGES / STEP_SECONDS
    return needed / (images_per_second / cores)


def passes_for(pass_seconds: float, turn_seconds: float) -> int:
    """Whole epochs in a turn: a loader whose epoch is short makes several."""
    return max(1, math.ceil(turn_seconds / max(pass_seconds, 1e-3)))


def exactly_once(turns: list[dict[str, Any]]) -> str:
    """'yes', or what was wrong in the worst epoch."""
    worst = {key: max(turn[key] for turn in turns) for key in ("missing", "again", "strange")}
    if not any(worst.values()):
        return "yes"
    return ", ".join(f"{count} {key}" for key, count in worst.items() if count)


def rates_of(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Samples per second and processor time of the turns of one side."""
    rates = [turn["samples"] / turn["seconds"] for turn in turns]
    cpu = [turn["cpu"] / turn["samples"] * 1000 for turn in turns]
    return {"rates": rates, "rate": statistics.median(rates), "low": min(rates), "high": max(rates),
            "cpu_per_1000": statistics.median(cpu)}


def bottleneck_of(turns: list[dict[str, Any]]) -> str:
    """What limited most turns; after '/proc:' if it is not the loader itself that names it."""
    names = [turn["bottleneck"] for turn in turns]
    name = max(names, key=names.count)
    return f"/proc: {name}" if turns[0].get("bottleneck_by") == "/proc" else name


def joules_per_1000(turns: list[dict[str, Any]]) -> float | None:
    if any("joules" not in turn for turn in turns):
        return None
    return float(statistics.median(turn["joules"] / turn["samples"] * 1000 for turn in turns))


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """The turns of one loader, the first epoch not among them."""
    return {**rates_of(turns), "exactly_once": exactly_once(turns)}


def load_summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """The same for turns of penstock-lab load, with what a training loop sees."""
    waits = [statistics.median(turn["waits"][i] for turn in turns) for i in range(3)]
    return {**summary(turns), "waits": waits,
            "idle": statistics.median(turn["idle"] for turn in turns),
            "bottleneck": bottleneck_of(turns), "joules_per_1000": joules_per_1000(turns),
            "read_mb": statistics.median(turn.get("read_mb", 0.0) / turn.get("passes", 1)
                                         for turn in turns)}
