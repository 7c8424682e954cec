# SPDX-License-Identifier: Apache-2.0
"""Bar charts of loading rates as SVG text: one bar per loader, a thin line from the slowest to the
fastest round. The colors are readable on light and on dark pages."""

from __future__ import annotations

import pathlib
from typing import Any
from xml.sax.saxutils import escape

from .report import Section

OURS, THEIRS, TEXT = "#158078", "#8b949e", "#6e7781"
WIDTH, BARS_AT, BARS_WIDTH = 560, 228, 266  # narrow, so that a phone shows all of it
ROW, BAR, TOP, BOTTOM = 26, 16, 60, 50


def of_section(section: Section) -> dict[str, Any]:
    """Chart data of the loaders that were compared in one setting."""
    head, here = section.head, section.head["machine"]
    bars = [{"title": figure["title"], "ours": name.startswith("penstock"), "rate": figure["rate"],
             "low": figure["low"], "high": figure["high"]}
            for name, figure in section.found.items()]
    return {"title": section.parameters["title"] or head["name"], "bars": bars,
            "source": f"{here['cpu']}, {here['cores']} cores, {head['date'][:10]}"}


def text(x: int | str, y: int, content: str, **attributes: Any) -> str:
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}"{more}>{escape(content)}</text>'


def bar_of(bar: dict[str, Any], y: int, scale: float) -> list[str]:
    """The lines of one bar: name, bar, spread of the rounds, figure."""
    middle, low, high = y + BAR // 2, BARS_AT + bar["low"] * scale, BARS_AT + bar["high"] * scale
    weight: dict[str, str] = {"font_weight": "bold"} if bar["ours"] else {}
    return [
        text(BARS_AT - 8, y + 13, bar["title"], text_anchor="end", **weight),
        f'<rect x="{BARS_AT}" y="{y}" width="{bar["rate"] * scale:.1f}" height="{BAR}" '
        f'fill="{OURS if bar["ours"] else THEIRS}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{TEXT}" stroke-width="2"/>',
        text(f"{high + 8:.1f}", y + 13, f"{bar['rate']:,.0f}", **weight),
    ]


def svg(data: dict[str, Any]) -> str:
    """The chart of {title, source, bars}; the fastest loader is on top."""
    bars = sorted(data["bars"], key=lambda bar: -bar["rate"])
    height = TOP + ROW * len(bars) + BOTTOM
    scale = BARS_WIDTH / max(bar["high"] for bar in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="13" fill="{TEXT}">',
        f"<title>{escape(data['title'])}: images per second</title>",
        text(8, 22, data["title"], font_size=15, font_weight="bold"),
        text(8, 43, "images per second, higher is better"),
    ]
    for i, bar in enumerate(bars):
        lines += bar_of(bar, TOP + ROW * i, scale)
    notes = "Bars: median of the rounds. Lines: slowest to fastest round."
    lines += [text(8, height - 30, notes, font_size=12),
              text(8, height - 12, data["source"], font_size=12)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def write(data: dict[str, Any], path: pathlib.Path) -> None:
    path.write_text(svg(data), encoding="utf-8")
    print(f"chart: {path}", flush=True)
