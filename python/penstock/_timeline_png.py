# SPDX-License-Identifier: Apache-2.0
"""A picture as a PNG file, drawn by matplotlib."""

from __future__ import annotations

import os
from typing import Any

from ._error import UnsupportedError
from ._timeline_picture import Line, Picture, Rect, Shape

_DPI = 100  # a unit of the picture is a pixel; the file has twice as many
_POINTS = 12 * 72 / _DPI  # the size of letters
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def _figure(path: str, picture: Picture) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            f"{path}: PNG needs matplotlib: pip install matplotlib, or write .svg or .html"
        ) from None
    figure = Figure(figsize=(picture.width / _DPI, picture.height / _DPI), dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure


def _add(axes: Any, shape: Shape) -> None:
    from matplotlib.patches import Rectangle

    if isinstance(shape, Rect):
        place = (shape.x, shape.y), shape.width, shape.height
        fill, stroke = shape.fill or "none", shape.stroke or "none"
        axes.add_patch(Rectangle(*place, facecolor=fill, edgecolor=stroke, linewidth=0.8))
    elif isinstance(shape, Line):
        x, y = zip(*shape.points, strict=True)
        axes.plot(x, y, color=shape.stroke, linewidth=shape.width * 72 / _DPI)
    else:
        weight = "bold" if shape.bold else "normal"
        axes.text(
            shape.x, shape.y, shape.text, ha=_ANCHORS[shape.anchor], va="baseline",
            fontsize=_POINTS, fontweight=weight, parse_math=False,
        )  # fmt: skip


def write(path: str | os.PathLike[str], picture: Picture) -> None:
    figure = _figure(os.fspath(path), picture)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    for shape in picture.shapes:
        _add(axes, shape)
    figure.savefig(path, format="png", dpi=2 * _DPI)
