# SPDX-License-Identifier: Apache-2.0
"""A page as one HTML file: no scripts, nothing that is loaded from elsewhere, light and dark."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from .. import tables
from .blocks import Block, Command, Heading, Notice, Picture, Table

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --text: #1f2328; --page: #ffffff; --soft: #f3f5f7;
  --line: #d1d9e0; --notice: #fff3d6; }}
@media (prefers-color-scheme: dark) {{ :root {{ --text: #e6e9ec; --page: #14181d; --soft: #20262d;
  --line: #3b434c; --notice: #45370f; }} }}
body {{ color: var(--text); background: var(--page); font: 16px/1.5 system-ui, sans-serif;
  max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }}
h1, h2, h3 {{ line-height: 1.25; }}
h2 {{ border-top: 1px solid var(--line); padding-top: 1.2rem; margin-top: 2rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 0.9rem; margin: 0.8rem 0; }}
th, td {{ border: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: left;
  overflow-wrap: normal; }}
th {{ background: var(--soft); }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
figure {{ background: #ffffff; color: #000000; border: 1px solid var(--line); margin: 1rem 0;
  padding: 0.4rem; }}
figure svg {{ display: block; width: 100%; max-width: 700px; height: auto; margin: 0 auto; }}
figcaption {{ font-size: 0.85rem; padding: 0.2rem 0.6rem; }}
pre {{ background: var(--soft); padding: 0.6rem; overflow-x: auto; white-space: pre-wrap; }}
.notice {{ background: var(--notice); border-left: 4px solid #e69f00; padding: 0.5rem 0.8rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}</body>
</html>
"""
_BEGIN = re.compile(r"<svg\b")
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.S)
_ID = re.compile(r'(?P<before>\bid="|\bhref="#|url\(#)(?P<name>[\w.-]+)')


def inline_svg(svg: str, number: int, text: str) -> str:
    """An SVG as part of a page. Its ids become those of picture NUMBER: pages have several."""
    found = _BEGIN.search(svg)
    drawn = _METADATA.sub("", svg[found.start():] if found else "").strip()
    drawn = _ID.sub(lambda m: f"{m['before']}p{number}-{m['name']}", drawn)
    return drawn.replace("<svg", f'<svg role="img" aria-label="{html.escape(text)}"', 1)


def _block(block: Block, number: int) -> str:
    if isinstance(block, Table):
        return f'<div class="wide">\n{tables.html(block.header, block.rows)}</div>\n'
    if isinstance(block, Picture):
        shown = html.escape(tables.one_line(block.text))
        return (f"<figure>\n{inline_svg(block.svg, number, tables.one_line(block.text))}\n"
                f"<figcaption>{shown}</figcaption>\n</figure>\n")
    text = html.escape(tables.one_line(block.text))
    if isinstance(block, Heading):
        return f"<h{block.level}>{text}</h{block.level}>\n"
    if isinstance(block, Command):
        return f"<pre><code>{text}</code></pre>\n"
    return f'<p class="notice">{text}</p>\n' if isinstance(block, Notice) else f"<p>{text}</p>\n"


def render(title: str, blocks: Sequence[Block]) -> str:
    body = "".join(_block(block, number) for number, block in enumerate(blocks))
    return _PAGE.format(title=html.escape(tables.one_line(title)), body=body)
