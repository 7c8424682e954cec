# SPDX-License-Identifier: Apache-2.0
"""What limits the speed of a loader, as text: Loader.report()."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ._stats import merge_stats

_COLUMNS = 80
_INDENT = 26  # of what to change
# A bottleneck that is no stage of the loader, in the words of its caller.
_MEANING = {
    "consumer": " (the training step)",
    "transform": " (the function transform=)",
    "memory": " (the limit memory=)",
}


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _filled(words: str) -> list[str]:
    return textwrap.wrap(words, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def _head(found: Mapping[str, Any]) -> list[str]:
    second = found["second"]
    close = f", closely followed by {second}{_MEANING.get(second, '')}" if second else ""
    name = found["bottleneck"]
    return [
        *_filled(f"Bottleneck: {name}{_MEANING.get(name, '')}{close}"),
        f"{_rate(found['samples_per_second'])} samples/s. The training loop waited for batches for "
        f"{100 * found['wait_share']:.0f} % of the time.",
    ]


def _stages(found: Mapping[str, Any]) -> list[str]:
    lines = ["", f"  {'stage':<10} {'samples/s':>12}  compared with the bottleneck"]
    for name, rate, ratio in found["stages"]:
        times = f"{ratio:.{1 if ratio < 10 else 0}f} times as fast"
        compared = "the bottleneck" if name == found["bottleneck"] else times
        lines.append(f"  {name:<10} {_rate(rate):>12}  {compared}")
    return lines


def _advice(found: Mapping[str, Any]) -> list[str]:
    lines = ["", f"{'expected':>12}  {'gain':<9}   what to change"]
    for _, rate, gain, text in found["advice"]:
        times = f"{gain:.{1 if gain < 9.95 else 0}f} times" if gain >= 1.005 else "none"
        first, *rest = textwrap.wrap(
            text, _COLUMNS - _INDENT, break_long_words=False, break_on_hyphens=False
        )
        lines.append(f"{_rate(rate):>10}/s  {times:<9}   {first}")
        lines += [" " * _INDENT + line for line in rest]
    return lines


def text(found: Mapping[str, Any]) -> str:
    """What Loader._counters.diagnosis() has found, in lines of at most 80 columns."""
    lines = _head(found)
    if found["stages"]:
        lines += _stages(found)
    if found["advice"]:
        lines += _advice(found)
    if found["note"]:
        lines += ["", *_filled(found["note"])]
    return "\n".join(lines) + "\n"


def of_ranks(ranks: Sequence[Mapping[str, Any]]) -> str:
    """What the counters of all ranks show, as text."""
    merged = merge_stats(ranks)
    waited = (
        f"waited {merged['wait_seconds_max']:.1f} s for batches, the fastest rank "
        f"{merged['wait_seconds_min']:.1f} s"
    )
    if merged["straggler"] is None:
        return f"\nRanks: no rank is a straggler. Rank {merged['slowest_rank']} {waited}.\n"
    return (
        f"\nStraggler: rank {merged['straggler']} {waited}.\nThe other ranks wait for it. "
        f"Its bottleneck is {merged['bottleneck']}.\n"
    )
