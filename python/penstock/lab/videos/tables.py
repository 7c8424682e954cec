# SPDX-License-Identifier: Apache-2.0
"""Tables of a report of `penstock-lab videos`."""

from __future__ import annotations

import statistics

from .. import tables
from ..experiment import results
from ..experiment.question import Cell
from ..experiment.report import Line
from ..loaders import sections
from ..loaders.report import difference, wanted_rows
from ..loaders.sections import Table, values
from . import sizes
from .question import arm_name, parse_aim


def name_of(cell: Cell) -> str:
    """Of a loader on a storage, or of a form."""
    return str(cell["form"]) if "form" in cell else arm_name(cell["loader"], cell["storage"])


class Section(sections.Section):
    """The loaders, or the forms, of one length and GOP."""

    def __init__(self, lines: list[Line], task: str, length: str, gop: int) -> None:
        self.task, self.length, self.gop = task, length, gop
        super().__init__(lines, {name_of(cell): cell for cell in results.cells(lines).values()
                                 if place_of(cell) == (task, length, gop)})

    def title(self) -> str:
        return "as they are" if self.length == sizes.SOURCE else f"{self.length}, GOP {self.gop}"


def place_of(cell: Cell) -> tuple[str, str, int]:
    """The section of a cell."""
    return cell["task"], cell["length"], cell["gop"]


def sections_of(lines: list[Line], task: str) -> list[Section]:
    """In the order of the report."""
    places = dict.fromkeys(place_of(line["cell"]) for line in lines if "cell" in line)
    return [Section(lines, *place) for place in places if place[0] == task]


def median(figure: Line, name: str) -> float:
    """For one clip."""
    return float(statistics.median(turn[name] / turn["samples"] for turn in figure["turns"]))


def speed_table(lines: list[Line]) -> Table:
    header = ["videos", "loader", "clips/s (min-max)", "speedup of penstock (min-max)",
              "CPU ms per clip", "MB stored"]
    rows = []
    for section in sections_of(lines, "speed"):
        for name, figure in section.found.items():
            rows.append([section.title(), figure["title"], values(figure["rates"], 1),
                         section.speedup(name), f"{1000 * median(figure, 'cpu'):.1f}",
                         f"{figure['disk'] / 1e6:.1f}"])
        rows += [[section.title(), *row] for row in section.absent_rows(len(header) - 1)]
    return Table(header, rows)


def bytes_table(lines: list[Line]) -> Table:
    rows = []
    for section in sections_of(lines, "speed"):
        for figure in section.found.values():
            rows.append([section.title(), figure["title"], f"{median(figure, 'bytes') / 1e3:,.0f}",
                         difference(figure["check"])])
    return Table(["videos", "loader", "kB read per clip", "pixel error, mean (max)"], rows)


def size_table(lines: list[Line]) -> Table:
    """A pack is its payload and its index; video files are what it is compared with."""
    header = ["videos", "stored as", "payload MB", "index MB", "bytes per frame", "/ video files"]
    rows = []
    for section in sections_of(lines, "size"):
        files = section.found.get("videos")
        for figure in section.found.values():
            turn = figure["turns"][0]
            total = turn["payload"] + turn["index"]
            rows.append([section.title(), figure["title"], f"{turn['payload'] / 1e6:.2f}",
                         f"{turn['index'] / 1e6:.2f}", f"{total / turn['samples']:,.0f}",
                         f"{total / files['turns'][0]['payload']:.2f}" if files else "-"])
        rows += [[section.title(), *row] for row in section.absent_rows(len(header) - 1)]
    return Table(header, rows)


def aim_table(lines: list[Line]) -> Table | None:
    rows: list[list[str]] = []
    for section in sections_of(lines, "speed"):
        aims = [parse_aim(text) for text in lines[0]["parameters"]["aims"]]
        wanted = [(aim.of, aim.against, aim.ratio) for aim in aims
                  if aim.gop in (0, section.gop)]
        rows += [[section.title(), *row] for row in wanted_rows(wanted, section.found)[1:]]
    return Table(["videos", "of", "against", "at least", "ratio (rounds)", ""], rows) if rows \
        else None


def tables_of(lines: list[Line]) -> list[Table]:
    tasks, found = lines[0]["parameters"]["tasks"], []
    if "speed" in tasks:
        found += [speed_table(lines), bytes_table(lines), *filter(None, [aim_table(lines)])]
    return found + ([size_table(lines)] if "size" in tasks else [])


def conditions(head: Line) -> str:
    """What all figures have in common."""
    chosen = head["parameters"]
    source = "the videos" if chosen["videos"] else "ffmpeg's test pictures"
    encoded = f"H.264 videos of {chosen['width']}x{chosen['height']}, encoded from {source}"
    speed = (f"Clips of {chosen['frames']} frames, stride {chosen['stride']}, at random places of "
             f"{encoded}; the long one has {chosen['seconds']} seconds. The center "
             f"{chosen['crop']}x{chosen['crop']} of each frame is resized to {chosen['size']}x"
             f"{chosen['size']}. {chosen['threads']} threads decode; other loaders have "
             f"{chosen['waiting']} on a store. {chosen['rounds']} interleaved rounds of "
             f"{chosen['clips']} clips, medians.")
    size = f"Sizes of {source} as they are, and of {encoded} with a key frame every GOP frames."
    return " ".join({"speed": speed, "size": size}[task] for task in chosen["tasks"])


def versions(lines: list[Line]) -> str:
    found = {}
    for section in sections_of(lines, "speed"):
        for figure in section.found.values():
            found.update(figure.get("versions", {}))
    return "".join(f"- {name} {value}\n" for name, value in sorted(found.items()))


def markdown(lines: list[Line]) -> str:
    """All tables of a report."""
    parts = [sections.introduction(lines[0], conditions(lines[0]))]
    parts += [tables.markdown(table.header, table.rows) for table in tables_of(lines)]
    return "\n".join(filter(None, [*parts, versions(lines)]))
