# SPDX-License-Identifier: Apache-2.0
"""penstock-lab report: one page of all runs in a folder."""

from __future__ import annotations

import argparse
import pathlib

from ..errors import LabError
from ..experiment import checked
from ..pages import Block, Text
from ..pages import run as run_page
from ..pages.write import write

HELP = """Makes a page of all runs below a folder: tables, plots, verdicts, and the command that
repeats each figure.

Writes one HTML file that needs no other file and no scripts, and the same as Markdown with its
plots in a folder beside it.
"""
TITLE = "Report of penstock-lab"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a folder with runs: the --out of other "
                        "verbs, or one run")
    parser.add_argument("-o", "--output", metavar="PAGE.html",
                        help="the page; the Markdown file has the same name with .md (default: "
                        "DIR/page.html)")
    parser.add_argument("--title", default=TITLE, help=f"of the page (default: {TITLE})")


def _blocks(path: pathlib.Path) -> list[Block]:
    lines = checked.read(path)
    try:
        return run_page.blocks(lines, path)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LabError(f"cannot show report '{path}': {type(error).__name__}: {error}. Remove the "
                       "report, or measure again") from error


def run(options: argparse.Namespace) -> int:
    folder = pathlib.Path(options.folder)
    page = pathlib.Path(options.output) if options.output else folder / "page.html"
    if page.suffix.lower() not in (".html", ".htm"):
        raise LabError(f"-o: expected a name that ends in .html, found '{page}'")
    found = checked.find(folder)
    blocks: list[Block] = [Text(f"{len(found)} {'run' if len(found) == 1 else 'runs'}.")]
    for path in found:
        blocks += _blocks(path)
    for written in write(page, options.title, blocks):
        print(f"page: {written}")
    return 0
