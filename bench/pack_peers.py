#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""penstock's packing beside the writers of other formats, on the same cores and photographs.

    pack_peers.py [--photos DIR] [--penstock PROGRAM] [--rounds N] [--times N] [WRITER...]

Every writer is a worker process with 2 processes, workers or threads to write with. It packs once,
and all its samples are read back with the same library and compared with the files. Then the
writers take turns, A B C A B C. The time of a turn ends when os.sync() has returned, for all of
them: penstock calls fsync itself, the others do not. What a Python library takes to be imported
does not count; the start of the program penstock does. The files are in the page cache.

The figures are medians; a ratio is that of two medians, with the lowest and highest of one round
behind it. Ends with 1 when a writer cannot run. Written to build/bench: pack-peers.jsonl and
pack-peers.md.
"""

import argparse
import pathlib
import shlex
import sys

import pack_speed
import tomllib
from common import places
from penstock.lab.loaders import environments, figures, report
from penstock.lab.loaders.workers import PREPARE_SECONDS, Worker

NAME, PROCESSES = "pack-peers", 2
SERVE = places.BENCH / "packers" / "serve.py"
BASES = {"penstock": "`pack`", "penstock-no-index": "`--no-index`"}
STORES = {"bytes": "files", "pixels": "pixels", "encoded": "re-encoded"}


def writers():
    text = (places.BENCH / "packers.toml").read_text(encoding="utf-8")
    return {name: {"environment": None, "options": {}, "variables": {}, **spec}
            for name, spec in tomllib.loads(text).items()}


def say(text):
    print(text, flush=True)


class Run:
    def __init__(self, options, folder):
        self.options, self.folder, self.out = options, folder, options.work / "peers-out"
        files = sorted(map(str, folder.glob("*/*")))
        self.list = options.work / "peers.txt"
        self.list.write_text("\n".join(files) + "\n", encoding="utf-8")
        self.workers, self.lines = {}, []

    def note(self, kind, name, **more):
        self.lines.append({"kind": kind, "writer": name, **more})

    def leave_out(self, name, why):
        say(f"  {name}: absent: {why}")
        self.note("absent", name, reason=str(why))
        if name in self.workers:
            self.workers.pop(name).stop()

    def turn(self, name):
        pack_speed.remove(self.out)
        return self.workers[name].turn()

    def start(self, name, spec):
        task = {"list": str(self.list), "folder": str(self.folder), "out": str(self.out),
                "processes": PROCESSES, "penstock": str(self.options.penstock.resolve()),
                "stores": spec["stores"], "options": spec["options"]}
        python = sys.executable
        if spec["environment"]:
            python = environments.python_of(spec["environment"])
        log = self.options.work / f"pack-{name}.log"
        worker = self.workers[name] = Worker(name, spec, python, log, SERVE)
        ready = worker.prepare(task)
        first = self.turn(name)
        checked = worker.ask(PREPARE_SECONDS, do="check")
        self.note("prepared", name, title=spec["title"], stores=spec["stores"], **ready)
        say(f"  {name}: {checked['samples']} samples read back, {first['bytes'] / 1e6:.0f} MB")

    def attempt(self, action, name, *args):
        try:
            return action(name, *args)
        except environments.Absent as why:
            self.leave_out(name, why)
            return None

    def round(self, number):
        for name in list(self.workers):
            turn = self.attempt(self.turn, name)
            if turn:
                self.note("turn", name, round=number, **turn)
        say(f"  round {number + 1} of {self.options.rounds}: " + ", ".join(
            f"{line['writer']} {line['samples'] / line['seconds']:.0f}" for line in self.lines
            if line["kind"] == "turn" and line["round"] == number))

    def all(self, chosen):
        try:
            for name, spec in chosen.items():
                self.attempt(self.start, name, spec)
            for number in range(self.options.rounds):
                self.round(number)
        finally:
            for worker in self.workers.values():
                worker.stop()
            pack_speed.remove(self.out)
        return self.lines


def results(lines):
    """{writer: its figures}, and {writer: why it is absent}."""
    absent = {line["writer"]: line["reason"] for line in lines if line["kind"] == "absent"}
    found = {}
    for line in lines:
        name = line["writer"]
        if line["kind"] == "prepared" and name not in absent:
            turns = [x for x in lines if x["kind"] == "turn" and x["writer"] == name]
            found[name] = {**line, **figures.rates_of(turns), "bytes": turns[-1]["bytes"]}
    return found, absent


def speedup(found, base, name):
    if base == name or base not in found:
        return "-"
    return report.spread(figures.ratio(found[base]["rates"], found[name]["rates"]))


def table(lines):
    """The table of the docs."""
    found, absent = results(lines)
    rows = [["writer (it stores)", "images/s (min-max)",
             *(f"speedup of {title} (min-max)" for title in BASES.values()), "CPU s / 1,000", "MB"]]
    for name, figure in found.items():
        versions = ", ".join(figure["versions"].values())
        rows.append([
            f"{figure['title']} {versions} ({STORES[figure['stores']]})", report.rate_text(figure),
            *(speedup(found, base, name) for base in BASES),
            f"{figure['cpu_per_1000']:.2f}", f"{figure['bytes'] / 1e6:,.0f}"])
    titles = writers()
    rows += [[titles[name]["title"], f"absent: {why}", *[""] * 4] for name, why in absent.items()]
    return report.table(rows)


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--penstock", type=pathlib.Path, default=places.BUILD / "penstock")
    parser.add_argument("--work", type=pathlib.Path, default=places.WORK)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=2, help="links to each photograph (2)")
    parser.add_argument("writers", nargs="*", metavar="WRITER", choices=[*writers(), []])
    options = parser.parse_args(arguments)
    if not options.photos.is_dir():
        parser.exit(77, f"no photographs at {options.photos}; say where with --photos\n")
    options.work.mkdir(parents=True, exist_ok=True)
    options.work = options.work.resolve()
    return options


def main():
    options = options_of(None)
    folder = options.work / f"peers-{options.times}"
    pack_speed.link_all(options.photos, folder, options.times)
    chosen = {name: spec for name, spec in writers().items() if name in (options.writers or [name])}
    head = {"kind": "parameters", "writer": None, "machine": places.machine(),
            "rounds": options.rounds, "command": shlex.join(["bench/pack_peers.py", *sys.argv[1:]])}
    say(f"{report.machine_text(head['machine'])}, {options.rounds} rounds")
    lines = [head, *Run(options, folder).all(chosen)]
    report.write(options.work / f"{NAME}.jsonl", lines)
    text = table(lines)
    (options.work / f"{NAME}.md").write_text(text, encoding="utf-8")
    say("\n" + text)
    return 1 if any(line["kind"] == "absent" for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
