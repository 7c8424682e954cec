# SPDX-License-Identifier: Apache-2.0
"""The table of layers in the documentation, between two marks."""

import os

from structure.layers import table

DOCUMENTS = ("CONTRIBUTING.md", "docs/explanation/architecture.md")
BEGIN = "<!-- layers: written by tools/check_structure.py --write -->\n"
END = "<!-- end of layers -->\n"


def split(root, name):
    """The text before the table, the table, the text after it; None without the marks."""
    with open(os.path.join(root, name), encoding="utf-8") as f:
        before, begin, rest = f.read().partition(BEGIN)
    found, end, after = rest.partition(END)
    return (before, found, after) if begin and end else None


def findings(root):
    for name in DOCUMENTS:
        parts = split(root, name)
        if parts is None:
            yield f"{name}: expected a table of layers between the marks '{BEGIN.strip()}' and " \
                  f"'{END.strip()}'"
        elif parts[1] != table():
            yield f"{name}: the table of layers is not that of tools/structure/layers.py; run " \
                  "python3 tools/check_structure.py --write"


def write(root):
    for name in DOCUMENTS:
        parts = split(root, name)
        if parts:
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(parts[0] + BEGIN + table() + END + parts[2])
