# SPDX-License-Identifier: Apache-2.0
"""Tables of texts."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. All columns but the first are aligned to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(header))]
    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines.insert(1, rule)
    texts = (
        " | ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths))
        )
        for line in lines
    )
    return "".join(f"| {text} |\n" for text in texts)
