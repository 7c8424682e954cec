#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes penstock/ops.pyi, the type stubs of the operations, from the library's table.

    PYTHONPATH=build/python python3 tests/python/ops_stub.py >ops.pyi; mv ops.pyi python/penstock
"""

import textwrap

from penstock import _pipeline as p

TYPES = {
    p.INT: "int",
    p.FLOAT: "float",
    p.SIZE: "int | Sequence[int]",
    p.RANGE: "Sequence[float]",
    p.FLOATS: "float | Sequence[float]",
    p.FACTOR: "float | Sequence[float]",
    p.SIDES: "int | Sequence[int]",
    p.INTS: "int | Sequence[int]",
    p.NUMBERS: "float | Sequence[float]",
    p.NAME: "str",
    p.DRAWN: "float | Sequence[float]",
    p.WEIGHTS: "Sequence[float]",
}

ONE_BRACKET = "str | Op | Sequence[str | Op]"
BRACKETS = f"Sequence[{ONE_BRACKET}]"

HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tests/python/ops_stub.py from the library's table of operations; do not edit.
from collections.abc import Sequence
from typing import Literal

from ._pipeline import Op as Op
from ._pipeline import source as source
from ._python import python as python

'''


def param_text(param):
    kinds = [TYPES[param.type]] if param.type in TYPES else []
    if param.type == p.OPS:
        kinds = [ONE_BRACKET if param.max == 1 else BRACKETS]
    if param.words and param.type != p.NAME:
        kinds.append("Literal[%s]" % ", ".join(f'"{word}"' for word in param.words.split()))
    kind = " | ".join(kinds)
    if param.initial is None:
        return f"{param.name}: {kind}"
    default = p.initial(param)
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{param.name}: {kind} = {text}"


def wrap(row):
    """A row of the table of parameters that fits into 100 columns."""
    return textwrap.wrap(row, 96, subsequent_indent=" " * 8) or [""]


def op_text(name, text, params):
    rows = [line for row in p.doc(text, params).split("\n") for line in wrap(row)]
    head = f"def {name}(" + "".join(f"\n    {param_text(param)}," for param in params)
    doc = [f'    """{rows[0]}'] + [("    " + row).rstrip() for row in rows[1:]]
    if len(doc) > 1:
        doc.append('    """')
    else:
        doc[0] += '"""'
    return head + ("\n" if params else "") + ") -> Op:\n" + "\n".join(doc) + "\n"


def stub():
    table = p.table()
    return HEAD + "\n".join(op_text(name, *row) for name, row in table.items())


if __name__ == "__main__":
    print(stub(), end="")
