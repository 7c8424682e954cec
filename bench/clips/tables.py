# SPDX-License-Identifier: Apache-2.0
"""Markdown of the records of bench/clips_speed.py."""

import statistics

import common  # noqa: F401
from penstock.lab.loaders import figures, report

BASE = "penstock"


def results(lines):
    """{loader: its figures}, and those that were absent with the reason."""
    absent = {line["loader"]: line for line in lines if line["kind"] == "absent"}
    found = {}
    for line in lines:
        turns = [x for x in lines if x["kind"] == "turn" and x["loader"] == line.get("loader")]
        if line["kind"] != "prepared" or not turns or line["loader"] in absent:
            continue
        clips = lines[0]["batch"] * turns[0]["batches"]
        found[line["loader"]] = {
            **line, "turns": turns, "clips": clips,
            "rates": [clips / turn["seconds"] for turn in turns],
            "later": [(clips - lines[0]["batch"]) / (turn["seconds"] - turn["first_seconds"])
                      for turn in turns]}
    return found, absent


def seconds(values, digits=2):
    values = list(values)
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}-{max(values):.{digits}f})")


def ratio_of(found, key, name):
    if BASE not in found or name not in found or name == BASE:
        return None
    return figures.ratio(found[BASE][key], found[name][key])


def ratio_text(found, key, name):
    result = ratio_of(found, key, name)
    return report.spread(result) if result else "-"


def middle(figure, key):
    return statistics.median(turn[key] for turn in figure["turns"])


def pixels(figure):
    return f"{figure['mean']:.2f} ({figure['max']:.0f})" if "mean" in figure else "-"


def machine(head):
    here = head["machine"]
    return (f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, "
            f"{here['date']}, commit {here['commit']}, load before {here['load_before']}. "
            f"{head['rounds']} interleaved rounds, medians (lowest-highest). "
            f"Command: `{head['command']}`\n")


def fetch_table(head, found, absent):
    slow = head["place"] == "slow"
    rows = [["loader", "seconds", "first batch", "penstock is", "without the first batch",
             "CPU s", "pixels off by, mean (max)",
             *(["opens", "reads", "seeks", "reads per clip", "MB read"] if slow else [])]]
    for name, figure in found.items():
        counts = []
        if slow:
            counts = [f"{middle(figure, key):,.0f}" for key in ("opens", "reads", "seeks")]
            counts += [f"{middle(figure, 'reads') / figure['clips']:.2f}",
                       f"{middle(figure, 'bytes') / 1e6:.0f}"]
        rows.append([figure["title"], seconds(turn["seconds"] for turn in figure["turns"]),
                     seconds(turn["first_seconds"] for turn in figure["turns"]),
                     ratio_text(found, "rates", name), ratio_text(found, "later", name),
                     seconds(turn["cpu"] for turn in figure["turns"]), pixels(figure), *counts])
    rows += [[line["title"], f"absent: {line['reason']}", *[""] * (len(rows[0]) - 2)]
             for line in absent.values()]
    return report.table(rows)


def verdicts(head, found):
    """(against, at least, the comparison or None, whether it is reached)."""
    rows = []
    for name, least in head["wanted"].items():
        result = ratio_of(found, "rates", name)
        rows.append((name, least, result, bool(result) and figures.reached(result, least)))
    return rows


def wanted_table(head, found):
    rows = [["penstock against", "at least", "ratio (rounds)", ""]]
    for name, least, result, enough in verdicts(head, found):
        word = "reached" if enough else "NOT reached"
        rows.append([name, f"{least:g}", report.spread(result) if result else "-",
                     word if result else "not measured"])
    return report.table(rows) if len(rows) > 1 else ""


def share(turn, first=True):
    """The part of the time that is waiting for data; without the first batch when asked."""
    if first:
        return turn["data_seconds"] / turn["seconds"]
    return turn["data_later"] / (turn["seconds"] - turn["first_seconds"])


def train_table(head, found, absent):
    rows = [["loader", "epoch s", "mean Time s", "mean Data s", "Data share of Time",
             "the same, without the first batch", "first batch's Data s", "penstock is"]]
    for name, figure in found.items():
        turns = figure["turns"]
        rows.append([
            figure["title"], seconds((turn["seconds"] for turn in turns), 1),
            f"{statistics.median(t['seconds'] / t['batches'] for t in turns):.3f}",
            f"{statistics.median(t['data_seconds'] / t['batches'] for t in turns):.4f}",
            f"{statistics.median(map(share, turns)) * 100:.1f} %",
            f"{statistics.median(share(t, False) for t in turns) * 100:.1f} %",
            seconds(turn["first_seconds"] for turn in turns), ratio_text(found, "rates", name)])
    rows += [[line["title"], f"absent: {line['reason']}", *[""] * 6] for line in absent.values()]
    return report.table(rows)


def versions(found):
    lines = []
    for figure in found.values():
        text = ", ".join(f"{key} {value}" for key, value in figure["versions"].items())
        lines.append(f"- {figure['title']}: {text}")
    return "\n".join(lines) + "\n"


def markdown(lines):
    head = lines[0]
    if head["what"] == "size":
        return size_markdown(lines)
    found, absent = results(lines)
    table = train_table if head["what"] == "train" else fetch_table
    return "\n".join([f"### {head['title']}\n", machine(head), table(head, found, absent),
                      wanted_table(head, found), versions(found)])


def megabytes(value):
    return f"{value / 1e6:.1f}"


def size_markdown(lines):
    sizes = [line for line in lines if line["kind"] == "size"]
    whole = sum(sizes[0][key] for key in ("payload", "index", "slack"))
    rows = [["MB", "payload", "index", "file system's slack", "on disk", "of the files", "files",
             "folders"]]
    for line in sizes:
        parts = [line[key] for key in ("payload", "index", "slack")]
        rows.append([line["what"], *map(megabytes, parts), megabytes(sum(parts)),
                     f"{sum(parts) / whole:.3f}", f"{line['files']:,}", f"{line['folders']:,}"])
    head = lines[0]
    return (f"### {head['title']}\n\nIndex of the files: the blocks of their folders; inodes are "
            f"not counted. Command: `{head['command']}`\n\n" + report.table(rows))
