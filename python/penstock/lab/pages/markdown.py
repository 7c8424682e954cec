# SPDX-License-Identifier: Apache-2.0
"""A page as Markdown. Pictures are files beside it."""

from __future__ import annotations

from collections.abc import Sequence

from .. import tables
from .blocks import Block, Command, Heading, Notice, Picture, Table


def pictures(blocks: Sequence[Block], stem: str = "plot") -> dict[str, str]:
    """Names and contents of the picture files that the page shows: STEM-1.svg, STEM-2.svg, ..."""
    found = [block for block in blocks if isinstance(block, Picture)]
    return {f"{stem}-{number}.svg": block.svg for number, block in enumerate(found, 1)}


def _block(block: Block, place: str) -> str:
    if isinstance(block, Table):
        return tables.markdown(block.header, block.rows)
    if isinstance(block, Picture):
        return f"![{tables.plain(block.text)}]({place})\n"
    if isinstance(block, Heading):
        return f"{'#' * block.level} {tables.plain(block.text)}\n"
    if isinstance(block, Command):
        return f"{tables.code(block.text)}\n"
    text = tables.plain(block.text)
    return f"> **Note:** {text}\n" if isinstance(block, Notice) else f"{text}\n"


def body(blocks: Sequence[Block], folder: str, stem: str = "plot") -> str:
    """FOLDER is where pictures() are, as the page sees it."""
    parts, number = [], 0
    for block in blocks:
        number += isinstance(block, Picture)
        parts.append(_block(block, f"{folder}/{stem}-{number}.svg"))
    return "\n".join(parts)


def render(title: str, blocks: Sequence[Block], folder: str) -> str:
    return f"# {tables.plain(title)}\n\n{body(blocks, folder)}"
