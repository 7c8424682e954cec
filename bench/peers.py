#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""penstock beside the other loaders, on the same cores and the same photographs.

    peers.py setup [NAME...]       install the others, each in build/peers/NAME; those that cannot
                                   be are said to be absent, with the reason
    peers.py run [SCENARIO...]     measure (train when none is named; all: every one there is)
    peers.py table NAME...         the tables of records that are there
    peers.py list                  scenarios, loaders and environments

Every loader is a worker process. It prepares what it reads, shows the pixels of fixed cases, makes
two epochs that are not counted, and then takes its turn in every round, A B C A B C. A turn is
whole epochs, at least --seconds long; every epoch has to give each sample once. The figures are
medians; a ratio is that of two medians, with the lowest and highest of one round behind it. No
winner is called when the rounds differ by more than the two sides do.

Memory is the highest sum of anonymous and shared pages over a loader's processes, in the first two
epochs. Pixels are compared with torch's antialiased resampling of what libjpeg-turbo decodes.

Written to build/bench: NAME.jsonl (first line: parameters, machine, versions), NAME.md, NAME.svg.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys

from compare import chart, environments, figures, places, report, scenario
from compare.rounds import Run, Set, say

LEAST_ROUNDS = 7
# What --record keeps in docs/records (tools/record.py), by scenario.
RECORDS = {"train": "train-speed", "decode-full": "decode-full", "decode-box": "decode-box"}


def do_setup(options):
    for name in options.names or environments.specs():
        say(f"{name}: ...")
        why = environments.setup(name, options.again)
        versions = environments.installed(name) if why is None else {}
        text = ", ".join(f"{key} {value}" for key, value in versions.items())
        say(f"{name}: absent: {why}" if why else f"{name}: {text}")
    return 0


def do_list(_):
    print("scenarios")
    for name in scenario.names():
        print(f"  {name:<20} {scenario.read(name)['title']}")
    print("loaders")
    for name, spec in scenario.loaders().items():
        try:
            name_of = spec["environment"]
            place = environments.python_of(name_of) if name_of else "build/venv"
        except environments.Absent as why:
            place = f"absent: {why}"
        print(f"  {name:<20} {spec['title']:<36} {place}")
    return 0


ROUNDS_THROUGH = 10


def long_pack(folder, files):
    """The photographs several times over: a short epoch is mostly its beginning and its end."""
    pack, links = folder / "accelerator.pen", folder / "accelerator-links"
    if not (pack / "manifest").exists():
        for number, file in enumerate(map(pathlib.Path, files)):
            place = links / file.parent.name
            place.mkdir(parents=True, exist_ok=True)
            for k in range(ROUNDS_THROUGH):
                (place / f"{number:06}-{k}{file.suffix}").symlink_to(file.resolve())
        subprocess.run([places.BUILD / "penstock", "pack", links, "-o", pack], check=True,
                       stdout=subprocess.DEVNULL)
    return pack


def accelerate(run, photos, seconds):
    """The product's own simulated accelerator, with every number of threads there may be."""
    pack, n = long_pack(photos.folder, photos.files), len(photos.files) * ROUNDS_THROUGH
    for threads in range(1, places.machine()["cores"] + 1):
        step = round(figures.STEP_SECONDS * 1000)
        command = [places.BUILD / "penstock", "bench", pack, "--consumer", str(step), "--batch",
                   str(figures.STEP_IMAGES), "--threads", str(threads), "--seconds", str(seconds),
                   "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        steps = figures.steps_of(row["samples"], n) / row["seconds"]
        run.note("accelerator", threads=threads, rate=steps * figures.STEP_IMAGES,
                 utilization=steps * figures.STEP_SECONDS,
                 cpu_per_1000=row["cpu_seconds_per_1000_samples"])


def setting_of(name, options):
    setting = scenario.read(name)
    if options.loaders:
        wanted = options.loaders.split(",")
        for loader in wanted:
            if loader not in scenario.loaders():
                raise ValueError(f"no loader {loader}; there are {', '.join(scenario.loaders())}")
        setting["loaders"] = wanted
        setting["base"] = setting["base"] if setting["base"] in wanted else wanted[0]
    return setting


def run_one(name, options, photos):
    setting = setting_of(name, options)
    say(f"{name}: {setting['title']}, {len(photos.files)} photographs, {options.rounds} rounds")
    run = Run(setting, photos, options.rounds, options.seconds)
    head = {"kind": "parameters", "name": name, "scenario": setting, "machine": places.machine(),
            "photographs": len(photos.files), "rounds": options.rounds, "seconds": options.seconds,
            "command": shlex.join(["bench/peers.py", *sys.argv[1:]])}
    run.all()
    if options.accelerator and name == "train":
        accelerate(run, photos, options.accelerator)
    head["versions"] = {line["loader"]: line["versions"] for line in run.lines
                        if line["kind"] == "prepared"}
    lines = [head, *run.lines]
    out = places.WORK / (options.name or name)
    report.write(out.with_suffix(".jsonl"), lines)
    if not any(line["kind"] == "turn" for line in lines):
        say("nothing was measured")
        return 1
    text = report.markdown(lines)
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    say("\n" + text)
    if options.record and name in RECORDS:
        places.record(RECORDS[name], text, head["machine"]["load_before"])
    chart.write(chart.of_run(lines, report.results(lines)[0]), out.with_suffix(".svg"))
    return 0


def do_run(options):
    names = options.names or ["train"]
    names = scenario.names() if names == ["all"] else names
    files = places.photo_files(options.photos, options.count)
    if not files:
        sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
    if options.rounds < LEAST_ROUNDS:
        say(f"fewer than {LEAST_ROUNDS} rounds: a trial, not a measurement")
    for name in names:
        if len(files) % scenario.read(name)["batch"]:
            say(f"{name}: {len(files)} photographs are no whole batches; the last one is short")
    photos = Set(files, options.python)
    return max(run_one(name, options, photos) for name in names)


def do_table(options):
    records = [report.read(places.WORK / f"{name}.jsonl") for name in options.names]
    for lines in records:
        print(report.markdown(lines))
    if len(records) > 1:
        print(report.overview(records))
    return 0


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("setup")
    verb.add_argument("--again", action="store_true", help="also what is there or failed")
    verb.add_argument("names", nargs="*", metavar="NAME")
    verbs.add_parser("list")
    verb = verbs.add_parser("table")
    verb.add_argument("names", nargs="+", metavar="NAME")
    verb = verbs.add_parser("run")
    verb.add_argument("names", nargs="*", metavar="SCENARIO")
    verb.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    verb.add_argument("--seconds", type=float, default=2.0, help="of a turn, at least (2)")
    verb.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    verb.add_argument("--count", type=int, help="take only so many photographs")
    verb.add_argument("--loaders", help="only these, divided by commas")
    verb.add_argument("--record", action="store_true",
                      help=f"keep the table of {', '.join(RECORDS)} in docs/records")
    verb.add_argument("--name", help="of what is written; the scenario's when not given")
    verb.add_argument("--accelerator", type=int, default=10, metavar="SECONDS",
                      help="of penstock bench with a simulated accelerator; 0: not at all (10)")
    verb.add_argument("--python", type=pathlib.Path, default=places.VENV_PYTHON,
                      help="with torch, NumPy and Pillow, for penstock (build/venv)")
    return parser.parse_args(arguments)


def main():
    options = options_of(None)
    try:
        return {"setup": do_setup, "list": do_list, "run": do_run, "table": do_table}[options.verb](
            options)
    except ValueError as error:
        sys.exit(f"peers.py: {error}")


if __name__ == "__main__":
    sys.exit(main())
