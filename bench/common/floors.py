# SPDX-License-Identifier: Apache-2.0
"""Ratios that must not fall: floors.toml has what a quiet machine reaches, and a floor is a share
of that. A ratio under its floor is measured once more before it counts."""

import tomllib
from penstock.lab.loaders import report

from common import places, say

SHARE = 0.7


def rows(kind):
    return tomllib.loads((places.BENCH / "floors.toml").read_text(encoding="utf-8"))[kind]


def name_of(row):
    return f"{row['of']} against {row['against']}"


def is_held(row, result, reached):
    """Prints the ratio and its floor. `reached`: the key of what a quiet machine reaches."""
    floor = SHARE * row[reached]
    held = result is not None and result["ratio"] >= floor
    figure = "not measured" if result is None else report.spread(result)
    say(f"{name_of(row)}: {figure}, floor {floor:.2f}"
        f"{'' if held else '  UNDER THE FLOOR: ' + row['reason']}")
    return held


def check(rows, measure, reached="drawn"):
    """How many ratios are under their floors twice. `measure` takes rows, and returns a result
    with ratio, low and high for each of them, or None."""
    for attempt in ("first", "second"):
        if attempt == "second":
            say("measuring once more what is under its floor")
        results = measure(rows)
        rows = [row for row, result in zip(rows, results, strict=True)
                if not is_held(row, result, reached)]
        if not rows:
            return 0
    return len(rows)


def calibrate(rows, measure, reached="drawn"):
    """Prints what this machine reaches: the figures for floors.toml when nothing else runs."""
    for row, result in zip(rows, measure(rows), strict=True):
        if result is None:
            say(f"{name_of(row)}: not measured")
            continue
        say(f"{name_of(row)}: {report.spread(result)}, so {reached} = {result['ratio']:.2f} "
            f"(is {row[reached]:.2f}), floor {SHARE * result['ratio']:.2f}")
    return 0
