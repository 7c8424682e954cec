# SPDX-License-Identifier: Apache-2.0
"""A page as Markdown. Pictures are files beside it."""

from __future__ import annotations

from collections.abc import Sequence

from .. import tables
from .blocks import Block, Command, Heading, Notice, Picture, Table


def picture_name(number: int) -> str:
    return f"plot-{number}.svg"


def pictures(blocks: Sequence[Block]) -> dict[str, str]:
    """Names and contents of the picture files that the page shows."""
    found = [block for block in blocks if isinstance(block, Picture)]
    return {picture_name(number): block.svg for number, block in enumerate(found, 1)}


def _block(block: Block, folder: str, number: int) -> str:
    if isinstance(block, Table):
        return tables.markdown(block.header, block.rows)
    if isinstance(block, Picture):
        return f"![{tables.plain(block.text)}]({folder}/{picture_name(number)})\n"
    if isinstance(block, Heading):
        return f"{'#' * block.level} {tables.plain(block.text)}\n"
    if isinstance(block, Command):
        return f"{tables.code(block.text)}\n"
    text = tables.plain(block.text)
    return f"> **Note:** {text}\n" if isinstance(block, Notice) else f"{text}\n"


def render(title: str, blocks: Sequence[Block], folder: str) -> str:
    """FOLDER is where pictures() are, as the page sees it."""
    parts, number = [f"# {tables.plain(title)}\n"], 0
    for block in blocks:
        number += isinstance(block, Picture)
        parts.append(_block(block, folder, number))
    return "\n".join(parts)
