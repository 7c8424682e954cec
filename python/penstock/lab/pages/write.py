# SPDX-License-Identifier: Apache-2.0
"""Pages as files."""

from __future__ import annotations

import pathlib

from ..errors import LabError
from . import html, markdown
from .blocks import Block


def write(page: pathlib.Path, title: str, blocks: list[Block]) -> list[pathlib.Path]:
    """The page as HTML and as Markdown with its pictures; returns the two files."""
    plots = page.with_name(f"{page.stem}-plots")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(html.render(title, blocks), encoding="utf-8")
        text = page.with_suffix(".md")
        text.write_text(markdown.render(title, blocks, plots.name), encoding="utf-8")
        for name, svg in markdown.pictures(blocks).items():
            plots.mkdir(exist_ok=True)
            (plots / name).write_text(svg, encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write page '{page}': {error.strerror}") from None
    return [page, text]
