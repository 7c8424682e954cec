#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of a run of `penstock-lab seeds` into docs/explanation/published-figures.md.

    ./dev lab fashion --out build/bench
    ./dev lab seeds --photos PHOTOS --repeats 7 --out build/bench --name figures
    PYTHONPATH=build/python build/venv/bin/python tools/seeds_page.py build/bench/seeds/figures

The figures go between the two marks of that page, and the plots to docs/records. A run that was not
alone on the machine when it started, or that is not complete, is refused; --busy takes it.
"""

import argparse
import pathlib
import re
import shlex
import sys
import textwrap

from penstock.lab.experiment import report
from penstock.lab.pages import Heading, markdown
from penstock.lab.verbs import seeds

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE, PICTURES = "docs/explanation/published-figures.md", "docs/records"
STEM = "published-figures"
MARKED = re.compile(r"(<!-- published figures -->\n)(.*?)(<!-- end published figures -->)", re.S)
IDLE = 0.5  # load average
COLUMNS = 100


def refusal(lines):
    """Why a run must not be published; None if it may be."""
    load = lines[0]["machine"]["load_before"]
    if lines[-1]["kind"] != "end":
        return "it is not complete: continue it with penstock-lab resume"
    if load > IDLE:
        return f"the load average was {load} before the run: measure again on an idle machine"
    return None


def command_of(head):
    """As it can be run elsewhere."""
    words = list(head["command"])
    if "--photos" in words[:-1]:
        words[words.index("--photos") + 1] = "DIR"
    return shlex.join(words)


def about(lines):
    head, end = lines[0], lines[-1]
    machine, versions = head["machine"], head["versions"]
    minutes = sum(line.get("seconds", 0.0) for line in lines if line["kind"] == "turn") / 60
    load = f"{machine['load_before']} before and {end.get('load_after', '?')} after the run"
    return (f"`{command_of(head)}` at {versions.get('commit') or 'unknown'}, "
            f"{head['date'][:10]}, {machine['cpu']}, {machine['cores']} cores, "
            f"{machine['memory_gb']} GB, Linux {machine['kernel']}; load average {load}. "
            f"It took {minutes:.0f} minutes.")


def wrapped(text):
    """Paragraphs with short lines; tables, pictures and headings stay as they are."""
    return "\n".join(
        line if line.startswith(("|", "!", "#", "`")) else textwrap.fill(
            line, COLUMNS, break_long_words=False, break_on_hyphens=False,
            subsequent_indent="> " if line.startswith("> ") else "")
        for line in text.splitlines()) + "\n"


def blocks_of(lines):
    found = seeds.page(lines)
    return [Heading(one.text, one.level - 1) if isinstance(one, Heading) else one for one in found]


def absent(lines):
    rows = [f"- {line['cell']['document']}: {line['reason']}" for line in lines
            if line["kind"] == "absent"]
    return "\n## Not measured\n\n" + "\n".join(rows) + "\n" if rows else ""


def write(lines, root):
    """The page and its pictures; returns their names."""
    page, blocks = root / PAGE, blocks_of(lines)
    figures = markdown.body(blocks, "../records", STEM) + absent(lines)
    text = page.read_text(encoding="utf-8")
    if not MARKED.search(text):
        sys.exit(f"seeds_page.py: '{page}' has no marks '<!-- published figures -->'")
    inside = wrapped(about(lines)) + "\n" + wrapped(figures)
    page.write_text(MARKED.sub(lambda found: found[1] + inside + found[3], text),
                    encoding="utf-8")
    for old in (root / PICTURES).glob(f"{STEM}-*.svg"):
        old.unlink()
    drawn = markdown.pictures(blocks, STEM)
    for name, svg in drawn.items():
        lines_of_svg = (line.rstrip() for line in svg.splitlines())
        (root / PICTURES / name).write_text("\n".join(lines_of_svg) + "\n", encoding="utf-8")
    return [PAGE, *(f"{PICTURES}/{name}" for name in drawn)]


def main(words=None, root=ROOT):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of the run")
    parser.add_argument("--busy", action="store_true", help="take a run that was not alone, or "
                        "that is not complete")
    args = parser.parse_args(words)
    lines = report.read(args.run)
    if lines[0]["question"] != "seeds":
        sys.exit(f"seeds_page.py: '{args.run}' is a run of {lines[0]['question']}; expected seeds")
    why = refusal(lines)
    if why and not args.busy:
        sys.exit(f"seeds_page.py: '{args.run}' is not published: {why}")
    for name in write(lines, root):
        print(f"written: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
