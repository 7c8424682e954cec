# SPDX-License-Identifier: Apache-2.0
"""The Markdown of a record of Kept: rates, and what came over the network, from the cache, and into
memory."""

import statistics

import common  # noqa: F401
from penstock.lab.loaders import figures, report

from remote import tables


def with_added(lines):
    """Each turn with the share of the pack by which its memory is larger than that of the base's
    turn in the same round."""
    setting = lines[0]["scenario"]
    base = {turn["round"]: turn for turn in tables.named(lines, "turn", setting["base"])}
    (prepared,) = tables.named(lines, "prepared", setting["base"])
    out = []
    for line in lines:
        if line["kind"] == "turn" and line["round"] in base:
            added = line["private_bytes"] - base[line["round"]]["private_bytes"]
            line = {**line, "added_bytes": added,
                    "added_share": added / (prepared["stored_mb"] * 1e6)}
        out.append(line)
    return out


def verdict(fact, turns):
    """(what, the worst round's figure, needed, whether it holds)"""
    values = [turn[fact["figure"]] for turn in turns]
    values = [value for value in values if value is not None]
    what = f"{fact['of']}: {fact['figure']}"
    needed = (f"at most {fact['at_most']:g}" if "at_most" in fact
              else f"at least {fact['at_least']:g}")
    if not values:
        return what, None, needed, False
    worst = max(values) if "at_most" in fact else min(values)
    holds = worst <= fact["at_most"] if "at_most" in fact else worst >= fact["at_least"]
    return what, worst, needed, holds


def verdicts(lines):
    """Of the scenario's facts; those of loaders that were left out by choice are not asked for."""
    lines, setting = with_added(lines), lines[0]["scenario"]
    return [verdict(fact, tables.named(lines, "turn", fact["of"])) for fact in setting["facts"]
            if fact["of"] in setting["loaders"]]


def megabytes(turns, key):
    values = [turn[key] / 1e6 for turn in turns]
    return f"{statistics.median(values):,.1f} ({min(values):,.1f}-{max(values):,.1f})"


def traffic_table(lines):
    rows = [["loader", "MB over the network (min-max)", "to open it, MB", "hits (min-max)",
             "private memory MB (min-max)", "more than from the disk MB (min-max)"]]
    lines = with_added(lines)
    for name in lines[0]["scenario"]["loaders"]:
        turns = tables.named(lines, "turn", name)
        if not turns:
            continue
        hits = [turn["hits"] for turn in turns if turn["hits"] is not None]
        same = name == lines[0]["scenario"]["base"]
        rows.append([
            name, megabytes(turns, "network_bytes"),
            f"{statistics.median(turn['opening_bytes'] for turn in turns) / 1e6:.3f}",
            f"{statistics.median(hits):.3f} ({min(hits):.3f}-{max(hits):.3f})" if hits else "-",
            megabytes(turns, "private_bytes"),
            "-" if same else megabytes(turns, "added_bytes")])
    return "Of a turn, from when the pack was open on:\n\n" + report.table(rows)


def whole_rates(turns, samples):
    """Images per second with the time of the first batch; of the turns that read a whole epoch."""
    return [samples / (turn["first_seconds"] + turn["seconds"]) for turn in turns if turn["whole"]]


def decoding(turns):
    """(share of its core that the decoding thread had, images for each second of that) by turn."""
    used = [(turn, turn["threads"].get("pen-decode", 0)) for turn in turns]
    return [(seconds / turn["seconds"], turn["samples"] / seconds) for turn, seconds in used
            if seconds]


def epoch_table(lines):
    """What images/s do not say: how long the first batch took, and what else ran on the core."""
    head, rows = lines[0], [["loader", "images/s with the first batch", "of the base's (min-max)",
                             "decoding thread's share of its core (min-max)",
                             "images per CPU second of it"]]
    setting = head["scenario"]
    samples = head["photographs"] * setting["copies"]
    base = whole_rates(tables.named(lines, "turn", setting["base"]), samples)
    for name in setting["loaders"]:
        turns = tables.named(lines, "turn", name)
        rates, shares = whole_rates(turns, samples), decoding(turns)
        if not rates or not shares:
            continue
        had = [share for share, _ in shares]
        beside = name != setting["base"] and len(rates) == len(base)
        rows.append([
            name, f"{statistics.median(rates):,.0f}",
            report.spread(figures.ratio(rates, base)) if beside else "-",
            f"{statistics.median(had):.2f} ({min(had):.2f}-{max(had):.2f})",
            f"{statistics.median(images for _, images in shares):,.0f}"])
    return report.table(rows) if len(rows) > 1 else ""


def facts_table(lines):
    rows = [["in every round", "the worst", "needed", ""]]
    for what, worst, needed, holds in verdicts(lines):
        rows.append([what, "-" if worst is None else f"{worst:.3g}", needed,
                     "reached" if holds else "NOT reached"])
    return report.table(rows)


def how(head):
    setting = head["scenario"]
    return (f"Batches of {setting['batch']} of uint8, RandomResizedCrop {setting['size']} and a "
            f"flip; one decoding thread on core {setting['decode_core']}, all other threads, the "
            f"Ceph gateway, the store and the proxy on core {setting['other_core']}. A turn is a "
            f"process of its own with nothing in its memory and reads a whole epoch; images/s are "
            f"counted from the first batch's arrival on. Files are in the page cache on all sides: "
            f"a round before the first does not count.\n")


def markdown(lines):
    head = lines[0]
    found, absent = tables.results(lines)
    return "\n".join([
        tables.introduction(head), how(head), tables.loader_table(head, found, absent),
        tables.wanted_table(head, found), epoch_table(lines),
        traffic_table(lines), facts_table(lines),
        tables.load_text(lines, found), tables.notes(found)])
