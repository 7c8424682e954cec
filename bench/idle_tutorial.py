#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the slow and the fast script of docs/tutorials/why-is-my-gpu-idle.md, and draws what they
did: a table and a picture.

    idle_tutorial.py [--rounds N]

The page is run from top to bottom in every round. Written to build/bench: idle-tutorial.md, .svg.
"""

import argparse
import os
import shutil
import sys

from common import places
from penstock.lab.loaders import report
from remote import idle

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
import page_tools

PAGE = places.ROOT / "docs" / "tutorials" / "why-is-my-gpu-idle.md"
TITLES = {"slow": "DataLoader, 2 workers", "fast": "penstock"}


def turn(folder, name):
    """(figures, events) of one of the scripts"""
    events = list(idle.cut(idle.events_of(folder / f"{name}.json.gz", [])))
    return idle.figures_of(events), events


def run_round(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    _, scope = page_tools.run_page(PAGE.read_text(encoding="utf-8"), folder)
    scope["loader"].close()
    return {name: turn(folder, name) for name in TITLES}


def rows_of(turns):
    rows = [["script", "accelerator idle %", "time of an epoch s", "longest wait ms"]]
    for name, found in turns.items():
        figures = [figure for figure, _ in found]
        rows.append([TITLES[name], idle.spread([100 * f["idle"] for f in figures], "{:.1f}"),
                     idle.spread([f["seconds"] for f in figures], "{:.2f}"),
                     idle.spread([1e3 * f["longest"] for f in figures], "{:.0f}")])
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(places.BUILD / "python")
    turns = {name: [] for name in TITLES}
    for _ in range(options.rounds):
        for name, found in run_round(places.WORK / "idle-tutorial").items():
            turns[name].append(found)
    table = report.table(rows_of(turns))
    print(table)
    out = places.WORK / "idle-tutorial"
    out.with_suffix(".md").write_text(table, encoding="utf-8")
    picture = idle.picture_of(turns, {name: {"title": TITLES[name]} for name in TITLES})
    out.with_suffix(".svg").write_text(picture, encoding="utf-8")
    print(f"picture: {out.with_suffix('.svg')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
