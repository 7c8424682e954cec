# SPDX-License-Identifier: Apache-2.0
"""The layers in the documentation: a table between two marks, and a picture."""

import os

from structure.layers import table
from structure.picture import PICTURE, svg

DOCUMENTS = ("CONTRIBUTING.md", "docs/explanation/architecture.md")
BEGIN = "<!-- layers: written by tools/check_structure.py --write -->\n"
END = "<!-- end of layers -->\n"


def split(root, name):
    """The text before the table, the table, the text after it; None without the marks."""
    before, begin, rest = read(root, name).partition(BEGIN)
    found, end, after = rest.partition(END)
    return (before, found, after) if begin and end else None


def read(root, name):
    """The text of a file, empty if there is none."""
    path = os.path.join(root, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def findings(root):
    if read(root, PICTURE) != svg():
        yield f"{PICTURE}: it is not the picture of tools/structure/layers.py; run python3 " \
              "tools/check_structure.py --write"
    for name in DOCUMENTS:
        parts = split(root, name)
        if parts is None:
            yield f"{name}: expected a table of layers between the marks '{BEGIN.strip()}' and " \
                  f"'{END.strip()}'"
        elif parts[1] != table():
            yield f"{name}: the table of layers is not that of tools/structure/layers.py; run " \
                  "python3 tools/check_structure.py --write"


def write(root):
    os.makedirs(os.path.join(root, os.path.dirname(PICTURE)), exist_ok=True)
    with open(os.path.join(root, PICTURE), "w", encoding="utf-8") as f:
        f.write(svg())
    for name in DOCUMENTS:
        parts = split(root, name)
        if parts:
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(parts[0] + BEGIN + table() + END + parts[2])
