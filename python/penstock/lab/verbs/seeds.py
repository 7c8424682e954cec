# SPDX-License-Identifier: Apache-2.0
"""penstock-lab seeds: published figures beside ours."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from .. import tables
from ..documents.question import Documents, Parameters, module
from ..experiment import command, parameters, report
from ..experiment.question import Question
from ..experiment.report import Line
from ..pages import Block, Command, Heading, Notice, Picture, Table, Text
from ..pages import run as run_page
from ..pages.write import write

HELP = """Measures the figures of five published documents on this machine, and makes a page with
theirs beside ours: GulpIO-benchmarks, AWS's GPU tuning, (DL)2, Concurrent Dataloader and FFCV.

Ratios are compared, because the machines differ. Storage and training steps are simulated where
the page says so. What this machine does not allow is absent, with the reason. A run that was
interrupted continues with the next document.

  penstock-lab seeds --photos photos/
  penstock-lab seeds aws ffcv --photos photos/ --out lab
"""
__all__ = ["Parameters"]
TITLE = "Five documents, measured again"
NOTE = ("Ours / published compares ratios or shares, never absolute rates: the machines differ. "
        "Where the last column says so, storage or training steps are simulated.")
HEADER = ["figure", "published", "ours", "ours / published", "simulated"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser, Parameters)


def question(chosen: Any, folder: pathlib.Path) -> Question:
    return Documents(chosen, folder)


def run(options: argparse.Namespace) -> int:
    chosen = parameters.from_options(Parameters, "seeds", options)
    if options.write_config:
        print(parameters.to_toml("seeds", chosen), end="")
        return 0
    name = options.name or parameters.name("seeds", chosen)
    folder = pathlib.Path(options.out) / "seeds" / name
    code = command.perform("seeds", chosen, folder, options.command)
    lines = report.read(folder)
    blocks = run_page.blocks(lines, folder / report.NAME)
    for written in write(folder / "page.html", TITLE, blocks):
        print(f"page: {written}")
    return code


def _row(name: str, figure: dict[str, Any]) -> list[str]:
    ratio, lower = figure.get("ratio"), " (lower is better)" if figure.get("lower") else ""
    return [f"{name}: {figure.get('what', '')}", str(figure.get("published", "")),
            str(figure.get("ours", "")),
            f"{float(ratio):.2f}{lower}" if isinstance(ratio, (int, float)) else "-",
            "simulated" if figure.get("simulated") else "no"]


def _turns(lines: list[Line]) -> list[tuple[str, Line]]:
    return [(str(line["cell"]["document"]), line) for line in lines if line["kind"] == "turn"]


def _named(name: str, turn: Line) -> list[tuple[str, dict[str, Any]]]:
    """The figures of a document, each with the short name that tables and plots have: aws 1."""
    return [(f"{name} {number}", figure) for number, figure in enumerate(turn["figures"], 1)]


def table(lines: list[Line]) -> str:
    rows = [_row(short, figure) for name, turn in _turns(lines)
            for short, figure in _named(name, turn)]
    return tables.markdown(HEADER, rows) + f"\n{NOTE}\n"


def _plot(lines: list[Line]) -> Picture | None:
    """All ratios as bars."""
    from .. import plots

    bars = [plots.Bar(short, float(figure["ratio"]), group=name,
                      simulated=bool(figure.get("simulated")))
            for name, turn in _turns(lines) for short, figure in _named(name, turn)
            if isinstance(figure.get("ratio"), (int, float))]
    if not bars:
        return None
    note = "The dashed line: as published. The tables name the figures; of some, lower is better."
    drawn = plots.bars("Ours / published", "our ratio / published ratio", bars, note, 1.0)
    return Picture(drawn.svg(), "Our ratio divided by the published one, for each figure.")


def _timeline(waits: dict[str, Any]) -> Picture:
    """Steps and waits of the simulated accelerator, one lane for each loader."""
    from .. import plots

    lanes = []
    for name, spans in waits.items():
        between = zip(spans, spans[1:])
        lanes.append(plots.Lane(name, [
            *(plots.Span("step", at + long, after[0] - at - long) for (at, long), after in between),
            *(plots.Span("waiting for data", at, long) for at, long in spans),
        ]))
    drawn = plots.timeline("What the accelerator does (simulated)", lanes,
                           "The first batches of an epoch. The steps are simulated.")
    return Picture(drawn.svg(), "Steps and waits of the simulated accelerator, by loader.")


def _notes(figures: list[tuple[str, dict[str, Any]]]) -> list[Text]:
    """What several figures share is said once."""
    sharing: dict[str, list[str]] = {}  # a sentence: the figures that have it
    for short, figure in figures:
        for sentence in filter(None, str(figure.get("note") or "").split(". ")):
            sharing.setdefault(sentence, []).append(short)
    said: dict[str, list[str]] = {}  # figures: their sentences
    for sentence, shorts in sharing.items():
        said.setdefault(", ".join(shorts), []).append(sentence)
    return [Text(f"{shorts}: {'. '.join(sentences)}.") for shorts, sentences in said.items()]


def _document(name: str, turn: Line) -> list[Block]:
    document = module(name)
    figures = _named(name, turn)
    found: list[Block] = [Heading(document.TITLE, 3), Text(f"Published at {document.SOURCE}"),
                          Table(HEADER, [_row(*named) for named in figures])]
    found += [Text(f"{short} is worse than published: {figure['why']}.")
              for short, figure in figures if figure.get("why")]
    found += _notes(figures)
    if turn.get("waits"):
        found.append(_timeline(turn["waits"]))
    return [*found, Text("Repeat it:"), Command(f"{document.COMMAND} --photos DIR")]


def page(lines: list[Line]) -> list[Block]:
    """What a page shows of such a run."""
    drawn = _plot(lines)
    found: list[Block] = [Notice(NOTE), *([drawn] if drawn else [])]
    for name, turn in _turns(lines):
        found += _document(name, turn)
    return found
