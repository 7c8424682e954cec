#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of operations in docs/reference/pipeline.md from the library's table.

    PYTHONPATH=build/python python3 tests/python/ops_table.py
"""

import pathlib

from penstock import _pipeline as p

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "pipeline.md"
BEGIN, END = "<!-- operations: made by tests/python/ops_table.py -->\n", "<!-- end -->\n"
KINDS = {
    p.INT: "integer",
    p.FLOAT: "number",
    p.SIZE: "height,width, or one number",
    p.RANGE: "low,high",
    p.FLOATS: "number, or one per channel",
    p.FACTOR: "x, or low,high",
    p.SIDES: "shorter side, or height,width",
    p.INTS: "integers",
    p.DRAWN: "number, or low,high",
    p.WEIGHTS: "one number per bracket",
    p.NUMBERS: "numbers",
}


def values_text(param):
    words = ", ".join(f"`{word}`" for word in (param.words or "").split())
    if param.type == p.WORD:
        return words
    if param.type == p.OPS:
        return "one bracket" if param.max == 1 else f"1 to {param.max:g} brackets"
    if param.type == p.NAME:
        return f"{words + ', or ' if words else ''}name of a field"
    bounds = f"{param.min:g} to {param.max:g}" if param.max < 1e30 else f"{param.min:g} or more"
    if param.min < -1e30:
        bounds = "any"
    return f"{words + ', or ' if words else ''}{KINDS[param.type]}; {bounds}"


def default_text(param):
    return "required" if param.initial is None else f"`{param.initial}`"


def table():
    rows = ["| operation | parameter | values | default | |", "|---|---|---|---|---|"]
    for name, (text, params) in p.table().items():
        rows.append(f"| **`{name}`** | | | | **{text}** |")
        rows += [
            f"| | `{a.name}` | {values_text(a)} | {default_text(a)} | {a.help} |" for a in params
        ]
    return "\n".join(rows) + "\n"


def split(page):
    """The text before the table, the table, and the text after it."""
    before, _, rest = page.partition(BEGIN)
    inside, _, behind = rest.partition(END)
    return before, inside, behind


if __name__ == "__main__":
    before, _, behind = split(PAGE.read_text())
    PAGE.write_text(before + BEGIN + table() + END + behind)
