#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the recorded comparison of loaders: docs/records/train-speed.json becomes train-speed.svg.
`./dev record` runs this."""

import json
import re

from common import places
from penstock.lab.loaders import chart

RECORD = places.ROOT / "docs" / "records" / "train-speed.json"
CHART = RECORD.with_suffix(".svg")
TITLE = "RandomResizedCrop 224 and flip"
# What the README explains is left out of the names.
EXPLAINED = re.compile("^penstock, |, full images$")
RATE = re.compile(r"([\d,]+) \(([\d,]+)-([\d,]+)\)")


def bar_of(row):
    """The bar of a table row such as ["FFCV", "578 (526-801)", ...]; None if it has no rates."""
    found = RATE.fullmatch(row[1])
    if not found:
        return None
    rate, low, high = (int(number.replace(",", "")) for number in found.groups())
    return {"title": EXPLAINED.sub("", row[0]), "ours": row[0].startswith("penstock"),
            "rate": rate, "low": low, "high": high}


def chart_data(record):
    bars = [bar for bar in map(bar_of, record["table"][1:]) if bar]
    return {"title": TITLE, "bars": bars,
            "source": f"{record['machine']}, {record['date']}, commit {record['commit']}"}


def main():
    chart.write(chart_data(json.loads(RECORD.read_text(encoding="utf-8"))), CHART)


if __name__ == "__main__":
    main()
