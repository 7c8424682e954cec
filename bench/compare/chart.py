#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bars of images per second: build/peers/chart/bin/python bench/compare/chart.py OUT.png < data."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS, THEIRS = "#1b7f79", "#9aa5b1"


def draw(data, path):
    bars = sorted(data["bars"], key=lambda bar: bar["rate"])
    rates = [bar["rate"] for bar in bars]
    errors = [[bar["rate"] - bar["low"] for bar in bars],
              [bar["high"] - bar["rate"] for bar in bars]]
    figure, axes = plt.subplots(figsize=(9, 0.9 + 0.42 * len(bars)))
    axes.barh([bar["title"] for bar in bars], rates, xerr=errors, ecolor="#444444",
              color=[OURS if bar["ours"] else THEIRS for bar in bars])
    for i, bar in enumerate(bars):
        axes.text(bar["high"], i, f"  {bar['rate']:,.0f}", va="center", fontsize=9)
    axes.set_xlim(0, max(bar["high"] for bar in bars) * 1.12)
    axes.set_xlabel(f"images per second ({data['machine']})", fontsize=9)
    axes.set_title(data["title"], fontsize=11, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(json.load(sys.stdin), sys.argv[1])
