#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From an object store beside the local disk. `penstock-lab load --scenario store` compares
penstock with other loaders there.

    remote_speed.py latency training: penstock from the local disk and from a store 110 ms away, one
                            decoding thread each
    remote_speed.py one-core
                            penstock alone, with its network threads on the core that decodes
    remote_speed.py in-place
                            the same over tars and single objects that stay in the store, beside an
                            ordinary pack and DataLoader with boto3
    remote_speed.py check   latency in short, for CI: a scripted server, drawn pictures, a floor
    remote_speed.py raw     no decoding, no delay: all blocks of a pack, against curl and boto3
    remote_speed.py cache   the second epoch from a cache as large as the pack, and half as large
    remote_speed.py preload the second process of a pack that is in memory, and what it adds to that
    remote_speed.py idle    a training step of 80 ms a batch, fed by DataLoader with boto3 and by
                            penstock from a store 110 ms away: how long it waits, as timelines
    remote_speed.py table NAME...

The store is a Ceph gateway on this machine, the distance HAProxy before it (tests/net). Loaders
take turns, there and back again; a turn is a process of its own with empty caches. The figures are
medians; a ratio is that of two medians, with the lowest and highest of one round behind it. No
winner is called when the rounds differ by more than the two sides do. DataLoader with boto3 is
installed by `penstock-lab setup objects`.

Written to build/bench: remote-NAME.jsonl (first line: parameters, machine), .md; for latency and
idle .svg; for idle also the traces, below idle.
Ends with 1 when an aim of the scenario is not reached.
"""

import argparse
import pathlib
import shlex
import signal
import statistics
import sys

import tomllib
from common import floors, places, say
from penstock.lab.loaders import figures, report
from penstock.lab.loaders.sets import Set
from remote import kept_tables, stores, tables
from remote.kept import Kept
from remote.latency import Latency
from remote.raw import Raw
from remote.stock import Stock

REMOTE = places.BENCH / "remote"
MARKDOWN = {"remote-raw": tables.raw_markdown, "remote-cache": kept_tables.markdown,
            "remote-preload": kept_tables.markdown}


def scenario(name, options):
    found = tomllib.loads((REMOTE / f"{name}.toml").read_text(encoding="utf-8"))
    if options.copies:
        found["copies"] = options.copies
    if options.loaders:
        found["loaders"] = options.loaders.split(",")
    return found


def loaders():
    return tomllib.loads((REMOTE / "loaders.toml").read_text(encoding="utf-8"))


def stock_of(setting, options):
    photos = options.photos or places.default_photos()
    files = places.photo_files(photos, options.count)
    if not files:
        import ratio_check

        say(f"no photographs in {photos}: drawn ones take their place")
        files = places.photo_files(ratio_check.drawn(options.count or 1000))
    return Stock(files, Set(files, places.WORK).folder, setting["copies"],
                 setting["copies"] if setting.get("objects_differ") else 1)


def head_of(name, setting, stock, options):
    return {"kind": "parameters", "name": f"remote-{name}", "scenario": setting,
            "machine": places.machine(), "photographs": len(stock.files),
            "rounds": options.rounds, "seconds": options.seconds,
            "command": shlex.join(["bench/remote_speed.py", *sys.argv[1:]])}


def keep(name, lines, text):
    out = places.WORK / f"remote-{name}"
    report.write(out.with_suffix(".jsonl"), lines)
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    say("\n" + text)
    return out


def ratios_reached(lines):
    found, _ = tables.results(lines)
    pairs = lines[0]["scenario"]["wanted"]
    results = [(report.comparison(found, pair["of"], pair["against"]), pair["at_least"])
               for pair in pairs]
    return all(result and figures.reached(result, least) for result, least in results)


def do_latency(options):
    setting = scenario(options.verb, options)
    stock = stock_of(setting, options)
    stock.make_pack()
    head = head_of(options.verb, setting, stock, options)
    say(f"{options.verb}: {setting['title']}, {stock.samples:,} samples, {options.rounds} rounds")
    with stores.Servers(stores.ceph(), setting["delay_ms"], setting["other_core"]) as servers:
        lines = [head, *Latency(setting, loaders(), stock, servers, options).all()]
    keep(options.name or options.verb, lines, tables.latency_markdown(lines))
    return 0 if ratios_reached(lines) else 1


def late(rows, found):
    """How many first batches took longer than they may."""
    count = 0
    for row in rows:
        seconds = statistics.median(found[row["of"]]["first"]) if row["of"] in found else 0
        if seconds > row["first_seconds"]:
            say(f"{row['of']}: first batch in {seconds:.2f} s, at most {row['first_seconds']}  "
                f"TOO LATE: {row['reason']}")
            count += 1
    return count


def do_check(options):
    """Ends with 1 when a ratio is under its floor twice, or samples came twice."""
    import ratio_check

    setting = scenario("check", options)
    if places.machine()["cores"] < 2:
        setting.update(decode_core=None, other_core=None)
    files = places.photo_files(options.photos or ratio_check.drawn(options.count or 200))
    stock = Stock(files, Set(files, places.WORK).folder, setting["copies"])
    stock.make_pack()
    head = head_of("check", setting, stock, options)
    wrong = []

    def measure(rows):
        servers = stores.Servers(stores.scripted(), setting["delay_ms"], setting["other_core"])
        with servers:
            lines = [head, *Latency(setting, loaders(), stock, servers, options).all()]
        found, absent = tables.results(lines)
        for name, figure in found.items():
            say(f"{name}: {figure['rate']:.0f} images/s, first batch "
                f"{tables.seconds_text(figure['first'])} s, each once: {figure['exactly_once']}")
        wrong.extend(name for name, figure in found.items() if figure["exactly_once"] != "yes")
        wrong.extend(absent)
        # A first batch that is late is as bad as a low ratio, and may be measured again as well.
        return [None if late([row], found) else
                report.comparison(found, row["of"], row["against"]) for row in rows]

    judge = floors.calibrate if options.calibrate else floors.check
    return 1 if judge(floors.rows("remote"), measure) or wrong else 0


def do_kept(options):
    setting = scenario(options.verb, options)
    stock = stock_of(setting, options)
    stock.make_pack()
    head = head_of(options.verb, setting, stock, options)
    say(f"{options.verb}: {setting['title']}, {stock.samples:,} samples, {options.rounds} rounds")
    with stores.Servers(stores.ceph(), setting["delay_ms"], setting["other_core"]) as servers:
        lines = [head, *Kept(setting, loaders(), stock, servers, options).all()]
    keep(options.name or options.verb, lines, kept_tables.markdown(lines))
    facts = all(row[-1] for row in kept_tables.verdicts(lines))
    return 0 if facts and ratios_reached(lines) else 1


def store_of(options):
    """(its name, the store)"""
    if options.store == "scripted":
        return "scripted S3 server", stores.scripted()
    return "Ceph gateway", stores.ceph()


def do_idle(options):
    from remote.idle import Idle, picture_of, rows_of  # they need the Python package

    setting = scenario("idle", options)
    stock = stock_of(setting, options)
    stock.make_pack()
    head = head_of("idle", setting, stock, options)
    title, store = store_of(options)
    title += f", {setting['delay_ms']} ms before each request"
    say(f"idle: {setting['title']}: {title}, {stock.samples:,} samples, {options.rounds} rounds")
    with stores.Servers(store, setting["delay_ms"]) as servers:
        turns = Idle(setting, loaders(), stock, servers, options).all()
    table = report.table(rows_of(turns, loaders(), title))
    lines = [{"kind": "turn", "loader": name, **figure}
             for name, found in turns.items() for figure, _ in found]
    out = keep(options.name or "idle", [head, *lines], table)
    out.with_suffix(".svg").write_text(picture_of(turns, loaders()), encoding="utf-8")
    say(f"picture: {out.with_suffix('.svg')}")
    return 0


def do_raw(options):
    setting = scenario("raw", options)
    stock = stock_of(setting, options)
    stock.make_pack()
    head = head_of("raw", setting, stock, options)
    say(f"raw: {setting['title']}, {stock.samples:,} samples, {options.rounds} rounds")
    with stores.Servers(stores.ceph(), 0) as servers:
        lines = [head, *Raw(setting, stock, servers, options).all()]
    keep(options.name or "raw", lines, tables.raw_markdown(lines))
    return 0 if all(row[-1] for row in tables.raw_verdicts(head, tables.raw_results(lines))) else 1


def do_table(options):
    for name in options.names:
        lines = report.read(places.WORK / f"remote-{name}.jsonl")
        print(MARKDOWN.get(lines[0]["name"], tables.latency_markdown)(lines))
    return 0


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, rounds, seconds in (("latency", 5, 10.0), ("one-core", 7, 10.0),
                                  ("in-place", 5, 10.0), ("raw", 5, 0.0), ("check", 3, 1.0),
                                  ("cache", 5, 600.0), ("preload", 5, 600.0), ("idle", 5, 20.0)):
        verb = verbs.add_parser(name)
        verb.add_argument("--rounds", type=int, default=rounds)
        verb.add_argument("--seconds", type=float, default=seconds,
                          help=f"of a turn, or its epoch ({seconds:g}); raw reads all")
        verb.add_argument("--photos", type=pathlib.Path)
        verb.add_argument("--count", type=int, help="take only so many photographs")
        verb.add_argument("--copies", type=int, help="of each; the scenario's when not given")
        verb.add_argument("--loaders", help="only these, divided by commas")
        verb.add_argument("--name", help="of what is written; the scenario's when not given")
        verb.add_argument("--python", type=pathlib.Path, default=places.VENV_PYTHON,
                          help="with torch, NumPy and boto3, for penstock (build/venv)")
    verbs.choices["check"].add_argument(
        "--calibrate", action="store_true", help="print the figures for floors.toml")
    idle = verbs.choices["idle"]
    idle.add_argument("--store", choices=("ceph", "scripted"), default="ceph")
    verb = verbs.add_parser("table")
    verb.add_argument("names", nargs="+", metavar="NAME")
    return parser.parse_args()


def main():
    options = options_of()
    # Servers and loaders end with it; also of what was started in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))
    verbs = {"latency": do_latency, "one-core": do_latency, "in-place": do_latency,
             "raw": do_raw, "check": do_check, "cache": do_kept, "preload": do_kept,
             "idle": do_idle, "table": do_table}
    return verbs[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
