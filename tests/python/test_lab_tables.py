# SPDX-License-Identifier: Apache-2.0
"""Tables of the lab: cells are text in Markdown and in HTML, whatever they have."""

import re

from penstock.lab import tables

HOSTILE = "<script>alert(1)</script> | `x` [a](b)\n| \x00\u202e"


def test_markdown_has_one_line_for_each_row():
    text = tables.markdown(["cell", "n"], [["a", "1"], [HOSTILE, "2"]])
    lines = text.splitlines()
    assert len(lines) == 4
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)
    assert "<script" not in text and "\x00" not in text and "\u202e" not in text
    assert lines[1].rstrip(" |").endswith("-:")


def test_html_escapes_and_aligns_numbers():
    text = tables.html(["cell", "rate"], [[HOSTILE, "1,234.5"], ["2 cats", "1.0 to 2.0"]])
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "<td class=number>1,234.5</td>" in text
    assert "<td class=number>1.0 to 2.0</td>" in text
    assert "<td>2 cats</td>" in text


def test_code_keeps_its_fence():
    assert tables.code("penstock info x") == "`penstock info x`"
    assert tables.code("a `` b`") == "``` a `` b` ```"
    assert tables.plain("*a* <b>\n_c_") == r"\*a\* \<b\> \_c\_"
