# SPDX-License-Identifier: Apache-2.0
"""The Markdown of a record of bench/remote_speed.py: tables, aims, what limits."""

import statistics

import common  # noqa: F401
from penstock.lab.loaders import figures, report

NOISY = 1.5  # rounds of one ratio differ by that factor: something else ran


def named(lines, kind, name=None):
    return [x for x in lines if x["kind"] == kind and (name is None or x["loader"] == name)]


def wanted_table(head, found):
    aims = [(pair["of"], pair["against"], pair["at_least"]) for pair in head["scenario"]["wanted"]]
    return report.wanted_table(aims, found)


def results(lines):
    """{loader: its figures} in the scenario's order, and those that were absent."""
    absent = {line["loader"]: line["reason"] for line in named(lines, "absent")}
    found = {}
    for name in lines[0]["scenario"]["loaders"]:
        turns = named(lines, "turn", name)
        if turns and name not in absent:
            (prepared,) = named(lines, "prepared", name)
            found[name] = {**figures.summary(turns), "title": prepared["title"], "turns": turns,
                           "versions": prepared["versions"], "stored_mb": prepared["stored_mb"],
                           "notes": turns[0].get("notes", []),
                           "first": [turn["first_seconds"] for turn in turns]}
    return found, absent


def bandwidth(lines):
    """Bytes per second of each round."""
    return [line["bytes"] / line["seconds"] for line in named(lines, "bandwidth")]


def seconds_text(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def loader_table(head, found, absent):
    base = head["scenario"]["base"]
    rows = [["loader", "images/s (min-max)", f"{base} / it (min-max)", "it is",
             "first batch s (min-max)", "CPU s / 1,000", "stored MB", "each at most once"]]
    for name, figure in found.items():
        result = report.comparison(found, base, name)
        same = name == base or result is None
        rows.append([
            figure["title"], f"{figure['rate']:,.0f} ({figure['low']:,.0f}-{figure['high']:,.0f})",
            "-" if same else report.spread(result), "" if same else report.OTHER[result["verdict"]],
            seconds_text(figure["first"]), f"{figure['cpu_per_1000']:.2f}",
            f"{figure['stored_mb']:,.0f}", figure["exactly_once"]])
    rows += [[name, f"absent: {why}", *[""] * 6] for name, why in absent.items()]
    return report.table(rows)


def first_batch(lines, name):
    """Seconds until the first batch against request times and its bytes over the bandwidth, by
    round; None without such a loader."""
    setting, (blocks,) = lines[0]["scenario"], named(lines, "blocks")
    speeds, out = bandwidth(lines), []
    for turn in named(lines, "turn", name):
        allowed = (setting["first_requests"] * setting["delay_ms"] / 1e3 +
                   turn["first_blocks"] * blocks["mean_bytes"] / speeds[turn["round"]])
        out.append({"seconds": turn["first_seconds"], "allowed": allowed,
                    "blocks": turn["first_blocks"]})
    return out or None


def first_text(lines, name):
    rows = first_batch(lines, name)
    if rows is None:
        return ""
    setting, (blocks,) = lines[0]["scenario"], named(lines, "blocks")
    middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    ratios = [row["seconds"] / row["allowed"] for row in rows]
    reached = statistics.median(ratios) <= 1
    return (f"First batch of {name}: {middle['seconds']:.2f} s; {setting['first_requests']} x "
            f"{setting['delay_ms']} ms and its {middle['blocks']:.0f} blocks of "
            f"{blocks['mean_bytes'] / 1e6:.2f} MB at the bandwidth measured are "
            f"{middle['allowed']:.2f} s: {'reached' if reached else 'NOT reached'} "
            f"({min(ratios):.2f}-{max(ratios):.2f} of it).\n")


def load_text(lines, found):
    """Where the time of penstock's turns went: processor seconds for each second."""
    rows = [["loader", "by thread", "by server"]]
    for name, figure in found.items():
        if not name.startswith("penstock"):
            continue
        parts = []
        for key in ("threads", "servers"):
            used = {}
            for turn in figure["turns"]:
                whole = turn["seconds"] + (turn["first_seconds"] if key == "servers" else 0)
                for who, seconds in turn[key].items():
                    used.setdefault(who, []).append(seconds / whole)
            middle = {who: statistics.median(values) for who, values in used.items()}
            parts.append(", ".join(f"{who} {value:.2f}" for who, value in middle.items()
                                   if value >= 0.01) or "-")
        rows.append([name, *parts])
    return "Processor seconds per second of penstock's turns:\n\n" + report.table(rows)


def ceiling_text(lines):
    speeds, (blocks,) = bandwidth(lines), named(lines, "blocks")
    setting = lines[0]["scenario"]
    middle = statistics.median(speeds)
    images = middle / blocks["mean_bytes"] * blocks["samples"]
    return (f"`curl --parallel` with {setting['at_once']} requests at once for the same blocks, on "
            f"the core of the servers, drew {middle / 1e6:.0f} MB/s "
            f"({min(speeds) / 1e6:.0f}-{max(speeds) / 1e6:.0f}): {images:,.0f} images/s.\n")


def introduction(head):
    here, setting = head["machine"], head["scenario"]
    return (f"### {setting['title']}\n\n"
            f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, Linux "
            f"{here['kernel']}, {here['date']}, commit {here['commit']}. "
            f"{head['photographs']:,} photographs times {setting['copies']}; {head['rounds']} "
            f"interleaved rounds; medians. "
            f"Command: `{head['command']}`\n")


def how(head):
    setting = head["scenario"]
    other = setting["other_core"]
    threads = (f"threads are on core {setting['client_core']}, and" if "client_core" in setting
               else "threads,")
    return (f"Batches of {setting['batch']} of uint8, RandomResizedCrop {setting['size']} and a "
            f"flip. penstock has one decoding thread on core {setting['decode_core']}; its other "
            f"{threads} the Ceph gateway, the store and the proxy are on core {other}. The "
            f"other loaders have {setting['workers']} worker processes on all cores. A "
            f"turn is a process of its own with empty caches; images/s count from the "
            f"first batch's arrival on, {head['seconds']:g} s or the epoch.\n")


def notes(found):
    lines = []
    for figure in found.values():
        versions = ", ".join(f"{key} {value}" for key, value in figure["versions"].items())
        lines.append(f"- {figure['title']}: " + "; ".join([versions, *figure["notes"]]))
    return "\n".join(lines) + "\n"


def latency_markdown(lines):
    head = lines[0]
    found, absent = results(lines)
    pairs = [report.comparison(found, pair["of"], pair["against"])
             for pair in head["scenario"]["wanted"]]
    return "\n".join([
        introduction(head), how(head), quiet_text(head, [p for p in pairs if p]),
        loader_table(head, found, absent), wanted_table(head, found), ceiling_text(lines),
        first_text(lines, "penstock-s3"), load_text(lines, found), notes(found)])


# --- raw -----------------------------------------------------------------------------------------


def raw_results(lines):
    """{client: figures}, with `rates` in MB/s and `cpus` in processor seconds per GB."""
    found = {}
    for name in lines[0]["scenario"]["loaders"]:
        turns = named(lines, "turn", name)
        if turns:
            rates = [turn["bytes"] / turn["seconds"] / 1e6 for turn in turns]
            cpus = [turn["cpu"] / turn["bytes"] * 1e9 for turn in turns]
            found[name] = {"rates": rates, "cpus": cpus, "rate": statistics.median(rates),
                           "cpu": statistics.median(cpus)}
    return found


def quiet_text(head, ratios):
    """What a reader of doubtful figures must know."""
    worst = max((ratio["high"] / ratio["low"] for ratio in ratios), default=1)
    load = head["machine"].get("load_before", 0)
    if worst < NOISY and load < head["machine"]["cores"] / 2:
        return ""
    return (f"**Doubtful**: the load of the machine was {load:g} before, and rounds differ by a "
            f"factor of {worst:.1f}. Measure again when nothing else runs.\n")


def raw_verdicts(head, found):
    """(what, ratio with its spread, needed, whether it holds) of penstock against curl."""
    setting, (ours, curl) = head["scenario"], (found["penstock"], found["curl"])
    rate = figures.ratio(ours["rates"], curl["rates"])
    cpu = figures.ratio(ours["cpus"], curl["cpus"])
    return [("bytes per second", rate, f"at least {setting['least_rate']}",
             rate["ratio"] >= setting["least_rate"]),
            ("processor seconds per GB", cpu, f"at most {setting['most_cpu']}",
             cpu["ratio"] <= setting["most_cpu"])]


def raw_markdown(lines):
    head, found = lines[0], raw_results(lines)
    rows = [["client", "MB/s (min-max)", "CPU s / GB (min-max)"]]
    for name, figure in found.items():
        rows.append([name, f"{figure['rate']:,.0f} ({min(figure['rates']):,.0f}-"
                     f"{max(figure['rates']):,.0f})", seconds_text(figure["cpus"])])
    verdicts, ratios = [["penstock / curl", "ratio (rounds)", "needed", ""]], []
    if "penstock" in found and "curl" in found:
        rows_of = raw_verdicts(head, found)
        ratios = [ratio for _, ratio, _, _ in rows_of]
        verdicts += [[what, report.spread(ratio), needed, "reached" if holds else "NOT reached"]
                     for what, ratio, needed, holds in rows_of]
    how_raw = (f"penstock: a Loader of labels alone in block order, every block whole and checked; "
               f"curl and boto3: the same ranges, {head['scenario']['at_once']} at once, to "
               f"nowhere; {head['scenario']['passes']} passes. Processor time is that of the "
               f"client alone, of penstock after one pass that is not counted.\n")
    return "\n".join([introduction(head), how_raw, quiet_text(head, ratios), report.table(rows),
                      report.table(verdicts)])
