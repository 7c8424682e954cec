# SPDX-License-Identifier: Apache-2.0
"""Tables of the loaders of a report, in Markdown."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from .. import shapes, tables
from . import figures, scenario

Line = dict[str, Any]
Found = dict[str, Line]

KEPT = 0.5  # of the stored data, less than which was read from the storage in an epoch
# What the row's loader is when the base is that.
OTHER = {"faster": "slower", "slower": "faster", "no winner": "no winner"}


def write(path: pathlib.Path, lines: list[Line]) -> None:
    """Lines of JSON; the first has all parameters, the machine and the versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read(path: pathlib.Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Section:
    """The loaders that were compared in one setting: format, side, storage, threads."""

    def __init__(self, head: Line, lines: list[Line]) -> None:
        self.head, self.parameters = head, head["parameters"]
        self.setting = {key: value for key, value in lines[0]["cell"].items() if key != "loader"}
        self.absent = {line["cell"]["loader"]: line["reason"] for line in lines
                       if line["kind"] == "absent"}
        self.found: Found = {}
        for name in self.parameters["loaders"]:
            own = [line for line in lines if line["cell"]["loader"] == name]
            turns = [line for line in own if line["kind"] == "turn"]
            if turns and name not in self.absent:
                self.found[name] = self._figures(own, turns)
        wanted = [self.parameters["base"], *self.found, self.parameters["loaders"][0]]
        self.base = next(name for name in wanted if name in self.found or not self.found)

    @staticmethod
    def _figures(own: list[Line], turns: list[Line]) -> Line:
        prepared, first = (next(line for line in own if line["kind"] == kind)
                           for kind in ("prepared", "first"))
        keys = ("title", "stored_mb", "check", "notes", "versions")
        return {**figures.load_summary(turns), **{key: prepared[key] for key in keys},
                "first_seconds": first["seconds"], "memory_mb": first["memory_mb"],
                "images": first["samples"]}


def sections(lines: list[Line]) -> list[Section]:
    """In the order of the report."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if "cell" in line:
            setting = {key: value for key, value in line["cell"].items() if key != "loader"}
            groups.setdefault(json.dumps(setting, sort_keys=True), []).append(line)
    return [Section(lines[0], group) for group in groups.values()]


def comparison(found: Found, of: str, against: str) -> Line | None:
    """With its verdict; None when one of the two is not there."""
    if of not in found or against not in found:
        return None
    result = figures.ratio(found[of]["rates"], found[against]["rates"])
    return {**result, "verdict": figures.verdict(result)}


def difference(check: Line) -> str:
    return "-" if "mean" not in check else f"{check['mean']:.2f} ({check['max']})"


def spread(result: Line) -> str:
    digits = 2 if result["ratio"] >= 0.1 else 5
    return "{:.{n}f} ({:.{n}f}-{:.{n}f})".format(
        result["ratio"], result["low"], result["high"], n=digits)


def rate_text(figure: Line) -> str:
    return f"{figure['rate']:,.0f} ({figure['low']:,.0f}-{figure['high']:,.0f})"


def table(rows: list[list[str]]) -> str:
    """Markdown of rows of Markdown; the first names the columns."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("---" if i == 0 else "---:" for i in range(len(rows[0]))) + "|")
    return "\n".join(lines) + "\n"


def speed_table(section: Section) -> str:
    """The table that docs/records keeps."""
    found, base = section.found, section.base
    rows = [["loader", "images/s (min-max)", f"speedup of {base} (min-max)", "CPU s / 1,000",
             "memory MB", "pixel error, mean (max)"]]
    for name, figure in found.items():
        result = comparison(found, base, name)
        rows.append([
            figure["title"], rate_text(figure),
            "-" if name == base or result is None else spread(result),
            f"{figure['cpu_per_1000']:.2f}", f"{figure['memory_mb']:,.0f}",
            difference(figure["check"])])
    rows += [[name, f"absent: {tables.cell(why)}", *[""] * 4]
             for name, why in section.absent.items()]
    return table(rows)


def bottleneck_text(section: Section, figure: Line) -> str:
    """With a remark if the storage was hardly read: pages that a process has mapped cannot be
    evicted, so a loader may have kept its data from the first epoch."""
    storage, read = section.setting["storage"], figure["read_mb"]
    evicted = storage == "cold" or storage.startswith("disk=")
    if evicted and figure["stored_mb"] and read < KEPT * figure["stored_mb"]:
        return f"{figure['bottleneck']}; read {100 * read / figure['stored_mb']:.0f} % of its data"
    return str(figure["bottleneck"])


def wait_table(section: Section) -> str:
    """What a training loop sees of a loader, and what limits it."""
    rows = [["loader", "MB/s", "wait for a batch, p50 / p95 / p99 ms", "idle %", "J / 1,000",
             "bottleneck"]]
    for figure in section.found.values():
        waits = " / ".join(f"{1000 * value:,.1f}" for value in figure["waits"])
        idle = f"{100 * figure['idle']:.1f}" if section.parameters["consumer"] else "-"
        joules = figure["joules_per_1000"]
        speed = figure["stored_mb"] / figure["images"] * figure["rate"]
        rows.append([figure["title"], f"{speed:,.1f}", waits, idle,
                     "absent" if joules is None else f"{joules:,.1f}",
                     bottleneck_text(section, figure)])
    return table(rows)


def detail_table(section: Section) -> str:
    found, base, cores = section.found, section.base, section.head["machine"]["cores"]
    rows = [["loader", f"against {base}", "stored MB", "first epoch s", "each sample once",
             "cores for one simulated H100"]]
    for name, figure in found.items():
        result = comparison(found, base, name)
        rows.append([
            figure["title"],
            "-" if name == base or result is None else OTHER[result["verdict"]],
            f"{figure['stored_mb']:,.0f}", f"{figure['first_seconds']:.2f}",
            figure["exactly_once"], "-" if section.parameters["consumer"] else
            f"{figures.cores_for_accelerator(figure['rate'], cores):.1f}"])
    return table(rows)


def wanted_rows(aims: list[tuple[str, str, float]], found: Found) -> list[list[str]]:
    """Ratios that are aimed at: (loader, other loader, ratio). The first row names the columns."""
    rows = [["of", "against", "at least", "ratio (rounds)", ""]]
    for of, against, least in aims:
        result = comparison(found, of, against)
        if result is None:
            figure, word = "-", "not measured"
        else:
            enough = figures.reached(result, least)
            figure, word = spread(result), "reached" if enough else "NOT reached"
        rows.append([of, against, f"{least:.4g}", figure, word])
    return rows


def wanted_table(aims: list[tuple[str, str, float]], found: Found) -> str:
    return table(wanted_rows(aims, found)) if aims else ""


def machine_text(here: Line) -> str:
    return f"{here['cpu']}, {here['cores']} cores, {here['date']}, commit {here['commit']}"


def setting_text(section: Section) -> str:
    """'format jpeg90, longest side 512, storage cold, 2 threads'."""
    shown = dict(section.setting)
    source = f"{shown.pop('source')}, " if "source" in shown else ""
    side = f", longest side {shown['side']}" if shown["side"] else ""
    simulated = "simulated " if shapes.is_simulated(shown["storage"]) else ""
    return (f"{source}format {shown['format']}{side}, {simulated}storage {shown['storage']}, "
            f"{count_text(shown['threads'], 'thread')}")


def count_text(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def introduction(section: Section) -> str:
    head, chosen, here = section.head, section.parameters, section.head["machine"]
    images = max((figure["images"] for figure in section.found.values()), default=0)
    commit = head["versions"].get("commit")
    consumer = (f"; a simulated training step takes {chosen['consumer']:g} ms for each batch"
                if chosen["consumer"] else "")
    return (f"### {chosen['title'] or head['name']}: {setting_text(section)}\n\n"
            f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, Linux "
            f"{here['kernel']}, {head['date'][:10]}{', commit ' + commit if commit else ''}. "
            f"{count_text(images, 'image')}, batches of {chosen['batch']} of uint8, "
            f"{count_text(section.setting['threads'], 'thread')} or worker processes{consumer}; "
            f"{count_text(chosen['rounds'], 'interleaved round')} of complete epochs, at least "
            f"{chosen['seconds']:g} s each; medians.\n")


def notes(section: Section) -> str:
    lines = []
    for figure in section.found.values():
        versions = ", ".join(f"{key} {value}" for key, value in figure["versions"].items())
        lines.append(f"- {figure['title']}: {'; '.join([versions, *figure['notes']])}")
    return "\n".join(lines) + "\n"


def markdown_of(section: Section) -> str:
    known = scenario.loaders()
    aims = [scenario.parse_aim(aim, known) for aim in section.parameters["aims"]]
    return "\n".join([introduction(section), speed_table(section), wait_table(section),
                      detail_table(section), wanted_table(aims, section.found),
                      notes(section)])


def markdown(lines: list[Line]) -> str:
    """All tables of a report."""
    explained = ("Bottleneck: penstock names its own. A name after '/proc:' is what Linux shows of "
                 "the loader's processes.\n")
    return "\n".join([*map(markdown_of, sections(lines)), explained])

