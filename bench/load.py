#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenarios of `penstock-lab load` on the photographs, and their tables for the docs.

    build/venv/bin/python bench/load.py [SCENARIO...] [options]    train when none is named

A run that was interrupted is continued; one that is complete is measured again. Its folder is
build/bench/load/SCENARIO: report.jsonl, table.md and chart.svg. ./dev figures keeps the tables for
the docs.
"""

import argparse
import pathlib
import shlex
import shutil
import sys

import tomllib
from common import places, say
from penstock.lab import _cli
from penstock.lab.experiment import report as reports
from penstock.lab.loaders import chart, environments, report, scenario

LEAST_ROUNDS = 7


def install(name, options):
    """What the loaders of a scenario need."""
    text = scenario.path_of(name).read_text(encoding="utf-8")
    wanted = options.loaders.split(",") if options.loaders else tomllib.loads(text)["loaders"]
    known = scenario.loaders()
    needed = [known[loader]["environment"] for loader in wanted if loader in known]
    for environment in dict.fromkeys(filter(None, needed)):
        why = environments.setup(environment)
        say(f"{environment}: {'absent: ' + why if why else 'installed'}")


def run(name, options):
    """Measures one scenario; its lines."""
    folder = places.WORK / "load" / (options.name or name)
    if (folder / "report.jsonl").exists() and reports.read(folder)[-1]["kind"] == "end":
        shutil.rmtree(folder)
    words = ["load", options.photos, "--scenario", name, "--rounds", options.rounds, "--seconds",
             options.seconds, "--work", places.WORK, "--out", places.WORK, "--name", folder.name]
    words += ["--count", options.count] if options.count else []
    words += ["--loaders", options.loaders] if options.loaders else []
    words = [str(word) for word in words]
    say(f"penstock-lab {shlex.join(words)}")
    code = _cli.main(words)
    return (folder, reports.read(folder)) if code == 0 else sys.exit(code)


def keep(name, folder, lines):
    (section,) = report.sections(lines)
    if not section.found:
        sys.exit(f"{name}: nothing was measured")
    (folder / "table.md").write_text(report.markdown(lines), encoding="utf-8")
    chart.write(chart.of_section(section), folder / "chart.svg")


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn, at least (2)")
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--count", type=int, help="take only so many photographs")
    parser.add_argument("--loaders", help="only these, separated by commas")
    parser.add_argument("--name", help="of the run's folder; the scenario's when not given")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = options_of(arguments)
    names = options.names or ["train"]
    if options.rounds < LEAST_ROUNDS:
        say(f"fewer than {LEAST_ROUNDS} rounds: a trial, not a measurement")
    for name in scenario.names() if names == ["all"] else names:
        install(name, options)
        keep(name, *run(name, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
