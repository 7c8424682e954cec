# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and the Python blocks of a page, in the order in which a reader meets them."""

import re
import shlex

from example_tools import ROOT, python

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)
PROGRAMS = {"python": (), "penstock": ("-m", "penstock"),
            "penstock-lab": ("-m", "penstock.lab")}


def run_page(text, folder):
    """In `folder`, which is the working directory. What its commands printed, by their text, and
    the variables of its Python blocks."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    printed, scope = {}, {"__name__": "__main__"}
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            exec(compile(block, "block of the page", "exec"), scope)
            continue
        for line in block.replace("\\\n", "").splitlines():
            program, *words = shlex.split(line, comments=True)
            printed[line] = python(*PROGRAMS[program], *words, cwd=folder)
    return printed, scope
