# SPDX-License-Identifier: Apache-2.0
"""The record of a run (JSON lines) and the Markdown that is made of it."""

import json

from compare import figures

# What the row's loader is when the base is that.
OTHER = {"faster": "slower", "slower": "faster", "no winner": "no winner"}


def write(path, lines):
    """The first line has all parameters, the machine and the versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def by_loader(lines, kind):
    return {line["loader"]: line for line in lines if line["kind"] == kind}


def results(lines):
    """{loader: its figures} in the scenario's order, and those that were absent."""
    head = lines[0]
    prepared, first, checks = (by_loader(lines, kind) for kind in ("prepared", "first", "check"))
    absent = {name: line["reason"] for name, line in by_loader(lines, "absent").items()}
    found = {}
    for name in head["scenario"]["loaders"]:
        turns = [x for x in lines if x["kind"] == "turn" and x["loader"] == name]
        if turns and name not in absent:
            found[name] = {**figures.summary(turns), "title": prepared[name]["title"],
                           "stored_mb": prepared[name]["stored_mb"], "check": checks[name],
                           "notes": prepared[name]["notes"], "versions": prepared[name]["versions"],
                           "first_seconds": first[name]["seconds"],
                           "memory_mb": first[name]["memory_mb"]}
    return found, absent


def comparison(found, of, against):
    """With its verdict; None when one of the two is not there."""
    if of not in found or against not in found:
        return None
    result = figures.ratio(found[of]["rates"], found[against]["rates"])
    return {**result, "verdict": figures.verdict(result)}


def difference(check):
    return "-" if "mean" not in check else f"{check['mean']:.2f} ({check['max']})"


def spread(result):
    return f"{result['ratio']:.2f} ({result['low']:.2f}-{result['high']:.2f})"


def rate_text(figure):
    return f"{figure['rate']:,.0f} ({figure['low']:,.0f}-{figure['high']:,.0f})"


def table(rows):
    """Markdown of rows of texts; the first names the columns."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("---" if i == 0 else "---:" for i in range(len(rows[0]))) + "|")
    return "\n".join(lines) + "\n"


def speed_table(head, found, absent):
    """The table that `--record` keeps for the docs."""
    base = head["scenario"]["base"]
    rows = [["loader", "images/s (min-max)", f"speedup of {base} (min-max)", "CPU s / 1,000",
             "memory MB", "pixel error, mean (max)"]]
    for name, figure in found.items():
        result = comparison(found, base, name)
        rows.append([
            figure["title"], rate_text(figure),
            "-" if name == base or result is None else spread(result),
            f"{figure['cpu_per_1000']:.2f}", f"{figure['memory_mb']:,.0f}",
            difference(figure["check"])])
    rows += [[name, f"absent: {why}", *[""] * 4] for name, why in absent.items()]
    return table(rows)


def detail_table(head, found):
    base = head["scenario"]["base"]
    rows = [["loader", f"against {base}", "stored MB", "first epoch s", "each sample once",
             "cores for one simulated H100"]]
    for name, figure in found.items():
        result = comparison(found, base, name)
        cores = figures.cores_for_accelerator(figure["rate"], head["machine"]["cores"])
        rows.append([
            figure["title"],
            "-" if name == base or result is None else OTHER[result["verdict"]],
            f"{figure['stored_mb']:,.0f}", f"{figure['first_seconds']:.2f}",
            figure["exactly_once"], f"{cores:.1f}"])
    return table(rows)


def wanted_table(head, found):
    rows = [["of", "against", "at least", "ratio (rounds)", ""]]
    for pair in head["scenario"]["wanted"]:
        result = comparison(found, pair["of"], pair["against"])
        if result is None:
            figure, word = "-", "not measured"
        else:
            enough = figures.reached(result, pair["at_least"])
            figure, word = spread(result), "reached" if enough else "NOT reached"
        rows.append([pair["of"], pair["against"], f"{pair['at_least']:.4g}", figure, word])
    return table(rows) if len(rows) > 1 else ""


def accelerator_table(lines):
    rows = [["threads", "images/s taken", "utilization", "CPU s / 1,000"]]
    for line in lines:
        if line["kind"] == "accelerator":
            rows.append([str(line["threads"]), f"{line['rate']:,.0f}",
                         f"{line['utilization'] * 100:.1f} %", f"{line['cpu_per_1000']:.2f}"])
    if len(rows) == 1:
        return ""
    return ("\nMeasured with `penstock bench --consumer 224 --batch 400`, a simulated accelerator "
            "that takes 0.224 s for 400 images:\n\n" + table(rows))


def machine_text(here):
    return f"{here['cpu']}, {here['cores']} cores, {here['date']}, commit {here['commit']}"


def introduction(head):
    here, setting = head["machine"], head["scenario"]
    return (f"### {setting['title']}\n\n"
            f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, Linux "
            f"{here['kernel']}, {here['date']}, commit {here['commit']}. {head['photographs']:,} "
            f"photographs, batches of {setting['batch']} of uint8, {setting['threads']} threads or "
            f"workers, warm cache; {head['rounds']} interleaved rounds of whole epochs, at least "
            f"{head['seconds']:g} s each; medians. Command: `{head['command']}`\n")


def notes(found):
    lines = []
    for figure in found.values():
        versions = ", ".join(f"{key} {value}" for key, value in figure["versions"].items())
        text = "; ".join([versions, *figure["notes"]])
        lines.append(f"- {figure['title']}: {text}")
    return "\n".join(lines) + "\n"


def markdown(lines):
    head = lines[0]
    found, absent = results(lines)
    return "\n".join([introduction(head), speed_table(head, found, absent),
                      detail_table(head, found),
                      wanted_table(head, found) + accelerator_table(lines), notes(found)])


def overview(records):
    """Loaders by scenarios: images per second, and what that is of the scenario's base."""
    columns = [(lines[0]["name"], lines[0]["scenario"]["base"], results(lines)[0])
               for lines in records]
    names = dict.fromkeys(name for _, _, found in columns for name in found)
    rows = [["loader", *[name for name, _, _ in columns]]]
    for name in names:
        row = [next(found[name]["title"] for _, _, found in columns if name in found)]
        for _, base, found in columns:
            result = comparison(found, base, name)
            rate = f"{found[name]['rate']:,.0f}" if name in found else "-"
            beside = result is not None and name != base
            row.append(f"{rate} (1 : {result['ratio']:.2f})" if beside else rate)
        rows.append(row)
    return table(rows)
