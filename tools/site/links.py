# SPDX-License-Identifier: Apache-2.0
"""Links of the Markdown pages: from a file of the repository to a page of the site.

A page of the site lies elsewhere than its file (README.md is index.md), and some files have a page
of their own there: an example, a header. What has none becomes a download."""

import os
import re

FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.M | re.S)
INLINE = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
DEFINITION = re.compile(r"^(\[[^\]]+\]: +)(\S+)()$", re.M)
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


class LinkError(Exception):
    """A link without a target."""


def outside_code(text, change):
    """The text with change() applied to everything but fenced code."""
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence.group()]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


def place(file, target):
    """The path of a link's target in the repository."""
    return os.path.normpath(os.path.join(os.path.dirname(file), target))


def moved(file, page, target, pages):
    """The link in `page`, which is made from `file`. `pages` maps paths of the repository to pages
    with an optional anchor."""
    path, mark, anchor = target.partition("#")
    if EXTERNAL.match(target) or not path:
        return target
    where = place(file, path)
    if where not in pages:
        raise LinkError(f"{file}: {target}: no page and no file of the site")
    to, own_mark, own_anchor = pages[where].partition("#")
    relative = os.path.relpath(to, os.path.dirname(page) or ".")
    return relative + (mark or own_mark) + (anchor or own_anchor)


def rewrite(text, file, page, pages):
    """The text of a file as a page of the site."""
    def change(part):
        for pattern in (INLINE, DEFINITION):
            part = pattern.sub(
                lambda m: m[1] + moved(file, page, m[2], pages) + m[3], part)
        return part

    return outside_code(text, change)
