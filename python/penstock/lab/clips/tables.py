# SPDX-License-Identifier: Apache-2.0
"""Tables of a report of `penstock-lab clips`: one section for each task and storage."""

from __future__ import annotations

import statistics

from .. import shapes, tables
from ..experiment import results
from ..experiment.report import Line
from ..loaders import figures, scenario, sections
from ..loaders.report import spread, wanted_rows
from ..loaders.sections import Table, values
from . import turns


def later_rate(turn: Line) -> float:
    """Clips per second after the first batch, which has the start of the loader."""
    batch = turn["samples"] / turn["batches"]
    return float((turn["samples"] - batch) / max(turn["seconds"] - turn["first"], 1e-9))


def share(turn: Line, first: bool = True) -> float:
    """The part of the time that a training step waits for data; without the first batch if not
    `first`."""
    if first:
        return float(turn["data"] / turn["seconds"])
    return float((turn["data"] - turn["first"]) / max(turn["seconds"] - turn["first"], 1e-9))


class Section(sections.Section):
    """The loaders of one task on one storage."""

    def __init__(self, lines: list[Line], task: str, storage: str) -> None:
        self.task, self.storage = task, storage
        self.parameters = lines[0]["parameters"]
        super().__init__(lines, {cell["loader"]: cell for cell in results.cells(lines).values()
                                 if (cell["task"], cell["storage"]) == (task, storage)})
        for one in self.found.values() if task != "size" else ():
            one["later"] = [later_rate(turn) for turn in one["turns"]]

    def title(self) -> str:
        chosen = self.parameters
        if self.task == "size":
            return f"size of {chosen['clips']:,} clips"
        simulated = "simulated " if shapes.is_simulated(self.storage) else ""
        where = f"{simulated}storage {self.storage}"
        if self.task == "fetch":
            batch = [chosen["batch"], 3, turns.FRAMES, turns.SIZE, turns.SIZE]
            return f"fetch, {chosen['fetched'] // chosen['batch']} batches of {batch}, {where}"
        clips = chosen["epoch"] or chosen["clips"]
        return (f"train, an epoch of {clips:,} clips, a simulated step of {chosen['consumer']:g} "
                f"ms for {chosen['batch']}, {where}")

    def aims(self) -> list[list[str]]:
        """Rows of the table of aims; the first names the columns."""
        if self.task != "fetch" or not self.parameters["aims"]:
            return []
        known = turns.loaders()
        aims = [scenario.parse_aim(aim, known) for aim in self.parameters["aims"]]
        return wanted_rows(aims, self.found)


def sections_of(lines: list[Line]) -> list[Section]:
    """In the order of the report."""
    pairs = dict.fromkeys((line["cell"]["task"], line["cell"]["storage"])
                          for line in lines if "cell" in line)
    return [Section(lines, *pair) for pair in pairs]


def later_speedup(section: Section, name: str) -> str:
    if name == section.base:
        return "-"
    return spread(figures.ratio(section.found[section.base]["later"], section.found[name]["later"]))


def pixels(figure: Line) -> str:
    off = figure.get("check", {})
    return f"{off['mean']:.2f} ({off['max']:.0f})" if "mean" in off else "-"


def fields(figure: Line, name: str) -> list[float]:
    return [float(turn[name]) for turn in figure["turns"]]


def percent(figure: Line, first: bool) -> str:
    return f"{100 * statistics.median(share(turn, first) for turn in figure['turns']):.1f} %"


def speed_table(section: Section) -> Table:
    header = ["loader", "seconds (min-max)", f"speedup of {section.base} (min-max)"]
    header += ["Data / Time", "without the first batch"] if section.task == "train" else \
        ["speedup without the first batch"]
    header.append("pixel error, mean (max)")
    rows = []
    for name, figure in section.found.items():
        row = [figure["title"], values(fields(figure, "seconds")), section.speedup(name)]
        row += [percent(figure, True), percent(figure, False)] if section.task == "train" else \
            [later_speedup(section, name)]
        rows.append([*row, pixels(figure)])
    return Table(header, rows + section.absent_rows(len(header)))


def detail_table(section: Section) -> Table:
    """Medians of what a step takes (Time) and waits (Data), and of the processor."""
    rows = []
    for figure in section.found.values():
        batches = figure["turns"][0]["batches"]
        rows.append([figure["title"], values(fields(figure, "first")),
                     values(fields(figure, "cpu")),
                     f"{statistics.median(fields(figure, 'seconds')) / batches:.4f}",
                     f"{statistics.median(fields(figure, 'data')) / batches:.4f}"])
    return Table(["loader", "first batch s (min-max)", "CPU s (min-max)", "Time s of a batch",
                  "Data s of a batch"], rows)


def count_table(section: Section) -> Table | None:
    """What a simulated disk with seeks has counted."""
    counted = [figure for figure in section.found.values() if "seeks" in figure["turns"][0]]
    rows = []
    for figure in counted:
        clips = figure["turns"][0]["samples"]
        opens, reads, seeks, size = (statistics.median(fields(figure, name))
                                     for name in ("opens", "reads", "seeks", "bytes"))
        rows.append([figure["title"], f"{opens:,.0f}", f"{reads:,.0f} ({reads / clips:.2f})",
                     f"{seeks:,.0f} ({seeks / clips:.2f})", f"{size / 1e6:.0f}"])
    header = ["loader", "opens", "reads (per clip)", "seeks (per clip)", "MB read"]
    return Table(header, rows) if rows else None


def size_table(section: Section) -> Table:
    def total(figure: Line) -> int:
        return sum(int(figure["turns"][0][part]) for part in ("payload", "index", "slack"))

    files = section.found.get("jpeg")
    rows = []
    for figure in section.found.values():
        turn = figure["turns"][0]
        rows.append([f"{figure['title']} ({turn['files']:,} files)",
                     *(f"{turn[part] / 1e6:.1f}" for part in ("payload", "index", "slack")),
                     f"{total(figure) / 1e6:.1f}",
                     f"{total(figure) / total(files):.3f}" if files else "-"])
    header = ["MB", "payload", "index", "file system slack", "on disk", "/ JPEG files"]
    return Table(header, rows + section.absent_rows(len(header)))


def tables_of(section: Section) -> list[Table]:
    if section.task == "size":
        return [size_table(section)]
    counts = count_table(section)
    aims = section.aims()
    return [speed_table(section), *([detail_table(section)] if section.found else []),
            *([counts] if counts else []), *([Table(aims[0], aims[1:])] if aims else [])]


def conditions(head: Line) -> str:
    """What all speeds have in common."""
    chosen = head["parameters"]
    source = "the videos" if chosen["videos"] else "ffmpeg's test pictures"
    return (f"Clips are cut from {source}: 37 JPEG files of 176x100 each. {chosen['threads']} "
            f"threads for penstock, {chosen['workers']} workers for a DataLoader; "
            f"{chosen['rounds']} interleaved rounds, medians. A turn is a process of its own; its "
            "time starts when everything is imported.")


def versions(section: Section) -> str:
    lines = []
    for figure in section.found.values():
        text = ", ".join(f"{key} {value}" for key, value in figure.get("versions", {}).items())
        lines += [f"- {figure['title']}: {text}\n"] if text else []
    return "".join(lines)


def markdown(lines: list[Line]) -> str:
    """All tables of a report."""
    parts = [sections.introduction(lines[0], conditions(lines[0]))]
    for section in sections_of(lines):
        parts.append(f"### {section.title()}\n")
        parts += [tables.markdown(table.header, table.rows) for table in tables_of(section)]
        parts.append(versions(section))
    return "\n".join(filter(None, parts))
