# SPDX-License-Identifier: Apache-2.0
"""A timeline as text, and as one HTML page without other files."""

from __future__ import annotations

import html
from typing import Any

from ._timeline import Process, Timeline
from ._timeline_picture import draw
from ._timeline_svg import svg


def time_text(seconds: float) -> str:
    if seconds >= 999.5:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


# ---- tables


def _value(name: str, value: Any) -> str:
    if name in ("waiting for data", "accelerator idle"):
        return f"{value:.1%}"
    if name == "elapsed time":
        return time_text(value)
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:.3g}"


def tables(process: Process) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows)"""
    figures = [[name, _value(name, value)] for name, value in process.figures.items()]
    stages = [[name, time_text(value)] for name, value in process.stages.items() if value]
    spans = [
        [name, f"{row['n']:,}", *(time_text(row[key]) for key in ("p50", "p90", "p99", "max"))]
        for name, row in process.spans.items()
    ]
    key = ["key"] if any("key" in row for row in process.slowest) else []  # if the pack is here
    slowest = [
        [str(s["sample"]), *(str(s[k]) for k in key), str(s["epoch"]), s["span"], time_text(s["s"])]
        for s in process.slowest
    ]
    return [
        ("Run", ["figure", "value"], figures),
        ("Time of all threads", ["stage", "time"], stages),
        ("Spans", ["span", "number", "p50", "p90", "p99", "longest"], spans),
        ("Slowest samples", ["sample", *key, "epoch", "span", "time"], slowest),
    ]


def text(timeline: Timeline) -> str:
    lines: list[str] = []
    for process in timeline.processes:
        lines += [process.name, "=" * len(process.name)]
        for title, columns, rows in filter(lambda table: table[2], tables(process)):
            lines += ["", title]
            cells = [columns, *rows]
            widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
            for row in cells:
                padded = [
                    cell.ljust(w) if i == 0 else cell.rjust(w)
                    for i, (cell, w) in enumerate(zip(row, widths, strict=True))
                ]
                lines.append("  " + "  ".join(padded).rstrip())
        lines.append("")
    return "\n".join(lines)


_STYLE = (
    "body{font-family:sans-serif;max-width:1200px;margin:1em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:0 2em 1em 0;display:inline-table;vertical-align:top}"
    "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}caption{text-align:left;font-weight:bold}"
    "svg{width:100%;height:auto}"
)


def _table_html(title: str, columns: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>\n"


def page(timeline: Timeline, title: str) -> str:
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>\n",
        svg(draw(timeline)),
    ]
    for process in timeline.processes:
        parts.append(f"<h2>{html.escape(process.name)}</h2>\n")
        parts += [_table_html(*table) for table in tables(process) if table[2]]
    parts.append("</body></html>\n")
    return "".join(parts)
