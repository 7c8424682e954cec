# SPDX-License-Identifier: Apache-2.0
"""Tables of texts, as Markdown and as HTML. Cells are text: nothing in them is markup."""

from __future__ import annotations

import html as _html
import re
from collections.abc import Sequence

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_MARKUP = re.compile(r"([\\`*_\[\]|<>#!~$])")
# What looks like a number with its unit: it is aligned to the right.
_NUMBER = re.compile(
    r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?(?: (?:to|of|±) [-+]?\d[\d,.]*)?"
    r"(?: ?(?:%|×|[kMG]?B(?:/s)?|m?s|dB))?(?: \(simulated\))?"
)


def one_line(text: object) -> str:
    """A text without line breaks, control characters and marks that turn the direction."""
    return _CONTROL.sub(" ", str(text)).strip()


def plain(text: object) -> str:
    """A text in Markdown that shows as it is, outside of tables."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def code(text: object) -> str:
    """A text in Markdown as code."""
    shown = one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{gap}{shown}{gap}{fence}"


def cell(text: object) -> str:
    """A text in a Markdown table that shows as it is."""
    return re.sub(r"([\\|`\[\]])", r"\\\1", one_line(text)).replace("<", "&lt;")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. All columns but the first are aligned to the right."""
    lines = [[cell(text) for text in line] for line in (header, *rows)]
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


def html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table. Numbers are aligned to the right by the class "number"."""
    def row(texts: Sequence[str], tag: str) -> str:
        cells = (
            f"<{tag}{' class=number' if tag == 'td' and _NUMBER.fullmatch(text) else ''}>"
            f"{_html.escape(text)}</{tag}>"
            for text in map(one_line, texts)
        )
        return f"<tr>{''.join(cells)}</tr>\n"

    body = "".join(row(texts, "td") for texts in rows)
    return f"<table>\n<thead>{row(header, 'th')}</thead>\n<tbody>\n{body}</tbody>\n</table>\n"
