# SPDX-License-Identifier: Apache-2.0
"""A timeline as SVG, as text, and as one HTML page without other files."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ._timeline import COLUMNS, Lane, Process, Timeline

# Okabe and Ito's colours, which people with any colour vision tell apart. Waits are pale.
COLOURS = {
    "run_batch": "#e69f00",
    "batch_to_device": "#cc79a7",
    "next_data": "#f0e442",
    "next": "#d55e00",
    "decode": "#0072b2",
    "read": "#009e73",
    "request": "#56b4e9",
    "wait_slot": "#bbbbbb",
    "wait_queue": "#d0d0d0",
    "wait_work": "#ececec",
}
_OTHER = "#777777"
_LEFT, _WIDTH, _ROW, _GAP = 120, 1000, 16, 4
_STALL = 0.5  # of a column: more than this part is spent waiting for data


def colour(name: str) -> str:
    return COLOURS.get(name, _OTHER)


def ticks(seconds: float) -> list[float]:
    """About ten round times."""
    step = 10 ** math.floor(math.log10(max(seconds, 1e-6)))
    step = next((step * part for part in (0.1, 0.2, 0.5) if seconds / (step * part) <= 12), step)
    return [i * step for i in range(int(seconds / step) + 1)]


def time_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


# ---- picture


def _runs(lane: Lane) -> Iterator[tuple[int, int, str]]:
    """(first column, end, the span that takes most of them)"""
    first, current = 0, ""
    for i in range(COLUMNS + 1):
        column = lane.columns[i] if i < COLUMNS else {}
        # `next` is inside of next_data: what is left of it is the rest of that call.
        inner = column.get("next", 0.0)
        shares = {k: v - (inner if k == "next_data" else 0) for k, v in column.items()}
        name = max(shares, key=lambda key: shares[key]) if shares else ""
        if i < COLUMNS and name == current:
            continue
        if current:
            yield first, i, current
        first, current = i, name


def _x(column: float) -> float:
    return _LEFT + column * _WIDTH / COLUMNS


def _lane_svg(lane: Lane, top: float) -> list[str]:
    parts = [
        f'<text x="{_LEFT - 8}" y="{top + 12}" text-anchor="end">{html.escape(lane.name[:18])}'
        "</text>"
    ]
    for first, end, name in _runs(lane):
        parts.append(
            f'<rect x="{_x(first):.1f}" y="{top}" width="{_x(end) - _x(first):.1f}" '
            f'height="{_ROW}" fill="{colour(name)}"><title>{html.escape(name)}</title></rect>'
        )
    return parts


def _line(points: Sequence[tuple[float, float]], stroke: str, top: float, height: float) -> str:
    """`points`: (x, part of the height)"""
    path = " ".join(f"{x:.1f},{top + height * (1 - min(1.0, y)):.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="1.5"/>'


def _use_svg(process: Process, seconds: float, top: float, height: float) -> list[str]:
    """Utilisation, with its axis on the right."""
    right = _LEFT + _WIDTH
    parts = [
        f'<text x="{_LEFT - 8}" y="{top + height / 2 + 4}" text-anchor="end">utilisation</text>',
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{height}" fill="none" '
        'stroke="#999999"/>',
    ]
    for percent in (0, 50, 100):
        y = top + height * (1 - percent / 100)
        parts.append(f'<text x="{right + 6}" y="{y + 4:.1f}">{percent} %</text>')
    step = 8
    means = [sum(process.busy[i : i + step]) / step for i in range(0, COLUMNS, step)]
    points = [(_x(i * step + step / 2), mean) for i, mean in enumerate(means)]
    parts.append(_line(points, "#000000", top, height))
    if process.gpu:
        points = [(_LEFT + at / seconds * _WIDTH, value / 100) for at, value in process.gpu]
        parts.append(_line(points, "#d55e00", top, height))
    return parts


def _stalls_svg(process: Process, top: float, height: float) -> list[str]:
    parts, first = [], None
    for i in range(COLUMNS + 1):
        stalled = i < COLUMNS and process.busy[i] < 1 - _STALL
        if stalled and first is None:
            first = i
        elif not stalled and first is not None:
            parts.append(
                f'<rect x="{_x(first):.1f}" y="{top}" width="{_x(i) - _x(first):.1f}" '
                f'height="{height}" fill="#d55e00" fill-opacity="0.15"/>'
            )
            first = None
    return parts


def _process_svg(process: Process, seconds: float, top: float) -> tuple[list[str], float]:
    """(its parts, where they end)"""
    use = 60
    height = use + _GAP + len(process.lanes) * (_ROW + _GAP)
    parts = [f'<text x="0" y="{top + 12}" font-weight="bold">{html.escape(process.name)}</text>']
    top += 20
    parts += _stalls_svg(process, top, height)  # first, so that the colours of lanes stay
    parts += _use_svg(process, seconds, top, use)
    at = top + use + _GAP
    for lane in process.lanes:
        parts += _lane_svg(lane, at)
        at += _ROW + _GAP
    return parts, top + height + 10


def _legend_svg(timeline: Timeline, top: float) -> list[str]:
    lanes = [lane for process in timeline.processes for lane in process.lanes]
    used = {name for lane in lanes for column in lane.columns for name in column}
    entries = [(name, colour(name)) for name in COLOURS if name in used]
    if used - COLOURS.keys():
        entries.append(("other spans", _OTHER))
    entries.append(("most of the time: waiting for data", "#f9dfcc"))
    parts, x = [], float(_LEFT)
    for name, fill in entries:
        parts.append(f'<rect x="{x:.0f}" y="{top}" width="12" height="12" fill="{fill}"/>')
        parts.append(f'<text x="{x + 16:.0f}" y="{top + 10}">{html.escape(name)}</text>')
        x += 32 + 7 * len(name)
    lines = "black line: part of the time in which the program did not wait for data"
    if any(process.gpu for process in timeline.processes):
        lines += "; red line: GPU utilisation"
    parts.append(f'<text x="{_LEFT}" y="{top + 30}">{lines}</text>')
    return parts


def svg(timeline: Timeline) -> str:
    parts: list[str] = []
    top = 10.0
    for process in timeline.processes:
        more, top = _process_svg(process, timeline.seconds, top)
        parts += more
    for at in ticks(timeline.seconds):
        x = _LEFT + at / timeline.seconds * _WIDTH
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + 5}" stroke="#333"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + 18}" text-anchor="middle">{at:g}</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH + 6}" y="{top + 18}">s</text>')
    parts += _legend_svg(timeline, top + 30)
    size = f"0 0 {_LEFT + _WIDTH + 60} {top + 70:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="white"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


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
    slowest = [
        [str(s["sample"]), str(s.get("key", "")), str(s["epoch"]), s["span"], time_text(s["s"])]
        for s in process.slowest
    ]
    return [
        ("Run", ["figure", "value"], figures),
        ("Time of all threads", ["stage", "time"], stages),
        ("Spans", ["span", "number", "p50", "p90", "p99", "longest"], spans),
        ("Slowest samples", ["sample", "key", "epoch", "span", "time"], slowest),
    ]


def text(timeline: Timeline) -> str:
    lines: list[str] = []
    for process in timeline.processes:
        lines += [process.name, "=" * len(process.name)]
        for title, columns, rows in tables(process):
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
        svg(timeline),
    ]
    for process in timeline.processes:
        parts.append(f"<h2>{html.escape(process.name)}</h2>\n")
        parts += [_table_html(*table) for table in tables(process) if table[2]]
    parts.append("</body></html>\n")
    return "".join(parts)
