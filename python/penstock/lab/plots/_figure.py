# SPDX-License-Identifier: Apache-2.0
"""The style that all plots share, and how they are written."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

from ..errors import LabError

# Okabe and Ito's colors, which people with any color vision tell apart. Yellow is left out: it is
# too pale on white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
# Color is never the only difference.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
HATCHES = ("", "///", "---", "xx", "\\\\\\", "++", "|||")  # of lines: dots make large files
EDGE = "#333333"

WIDTH = 7.0  # inches: 672 CSS pixels
NAME_LENGTH = 48  # letters of a name that a plot shows
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
    "text.parse_math": False,  # names are text, whatever characters they have
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": EDGE,
    "axes.formatter.useoffset": False,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: object, length: int = NAME_LENGTH) -> str:
    """A text as a plot can show it: no control characters, no more letters than there is room."""
    found = _NOT_SHOWN.sub("?", str(text))
    return found if len(found) <= length else found[: length - 1] + "\u2026"


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib set up for the plots of the lab, whatever the user's settings are."""
    try:
        import matplotlib
    except ImportError:
        raise LabError(
            "plots need matplotlib, which is not installed. Run: pip install matplotlib"
        ) from None
    # A letter that no font has is drawn by the browser: text stays text.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


class Plot:
    """A finished plot."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn
        text = io.StringIO()
        self._write(text, "svg")  # now: each drawing moves the layout by a hair
        self._svg = "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"

    def _write(self, target: Any, kind: str) -> None:
        with style():
            nothing = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            self._drawn.savefig(target, format=kind, metadata=nothing, dpi=100,
                                bbox_inches="tight", pad_inches=0.1)

    def svg(self) -> str:
        """The plot as the text of an SVG file."""
        return self._svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plot; the name of the file ends in .svg or .png."""
        kind = os.path.splitext(path)[1].lower().lstrip(".")
        if kind == "svg":
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg())
        elif kind == "png":
            self._write(path, "png")
        else:
            raise LabError(
                f"cannot save plot '{os.fspath(path)}': expected a name that ends in .svg or .png")


def figure(title: str, note: str = "", height: float = 3.6) -> tuple[Any, Any]:
    """A Matplotlib figure and its axes in the style of the lab. Call it inside of style().

    note    one line below the plot: what was simulated, what the lines across the bars mean
    height  in inches; the width is always the same"""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(WIDTH, height + (0.25 if note else 0.0)), layout="constrained")
    axes = drawn.add_subplot()
    axes.set_title(clean(title, 72))
    if note:
        drawn.supxlabel(clean(note, 110), fontsize=8.5, color=EDGE, x=0.01, ha="left")
    return drawn, axes


def check_finite(what: str, values: Any) -> None:
    for value in values:
        if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
            raise LabError(f"cannot draw {what}: expected finite numbers, found {value!r}")


def legend(axes: Any, n: int, **more: Any) -> None:
    """Names of the series above the plot, out of the way of what is drawn."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.995), ncols=min(n, 4), borderaxespad=0.2,
                columnspacing=1.4, handlelength=2.6, borderpad=0.1, **more)
    axes.set_title(axes.get_title("left"), pad=8 + 15 * ((n + 3) // 4))


def number(value: float) -> str:
    """A figure beside a bar: three digits that count, groups of three."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 1e-3:
        return f"{value:.3g}"
    return f"{value:.2e}"
