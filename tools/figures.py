#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the tables of the docs, one run after another, and keeps them in docs/records.

    ./dev figures [NAME...] [--list] [--again] [--busy] [-- OPTION...]

NAME is a section of tools/records.toml or one of its records; without a name, all are measured. A
run whose records are complete and not stale is left out, so the same command continues after an
interruption. --again measures it once more. --list prints the runs and how long they take.

The machine must be idle: a load average of at most 0.5 at the start, and later at most 0.5 cores
that other programs use. Otherwise the command ends; with --busy it measures, and the records state
the load. OPTIONs are added to each command, for a trial: its records are kept in build/figures,
and the docs stay as they are.

    ./dev figures train-speed --busy -- --count 40 --rounds 1

At the end the tables are written into the docs (./dev record). Exit code 1: a run failed.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

import record

MOST_LOAD = 0.5
MOST_STOLEN = 0.1  # cores
WAIT_S, PROBE_S = 180, 5
WORK = record.ROOT / "build" / "figures"


def default_photos():
    given = os.environ.get("PENSTOCK_PHOTOS")
    return pathlib.Path(given) if given else record.ROOT.parent / "shared" / "data" / "photos"


# ---- the load of the machine -----------------------------------------------------------------


def processor_seconds():
    """Since the machine started: of all processes together, and what the host of a virtual machine
    gave to others while they could have run ("steal")."""
    line = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    user, nice, system, _, _, irq, soft, stolen = map(int, line.split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / ticks, stolen / ticks


def cores_used(seconds=PROBE_S):
    """By other programs: this one sleeps."""
    began, before = time.monotonic(), processor_seconds()[0]
    time.sleep(seconds)
    return round((processor_seconds()[0] - before) / (time.monotonic() - began), 2)


def load():
    return round(os.getloadavg()[0], 2)


def wait_until_idle(measure, wait_s=WAIT_S):
    """The last value of MEASURE: waits while it is above MOST_LOAD, but not for ever."""
    end = time.monotonic() + wait_s
    while (found := measure()) > MOST_LOAD and time.monotonic() < end:
        time.sleep(1)
    return found


# ---- one run ---------------------------------------------------------------------------------


class Failed(Exception):
    pass


def is_done(run):
    """Whether all its records were made by this program, from code that has not changed since."""
    kept = [record.read(name) for name in run.tables]
    return all(one and "load_after" in one and record.CHANGES not in one["commit"]
               and not record.staleness(one) for one in kept)


def minutes_of(run):
    """As long as last time, else the estimate."""
    last = record.read(next(iter(run.tables))) or {}
    return last["seconds"] / 60 if "seconds" in last else run.minutes


def continues(folder, paths):
    """Whether a report is of an interrupted run, and PATHS are as they were."""
    from penstock.lab.experiment import report

    lines = report.read(folder)
    begun = lines[0].get("versions", {}).get("commit")
    return lines[-1]["kind"] != "end" and begun and not record.changes_since(begun, paths)


def forget(run, command):
    """Removes the report of a run, unless this command was interrupted and can continue."""
    folder, last = record.ROOT / run.report, WORK / f"{run.name}.command"
    same = last.exists() and last.read_text(encoding="utf-8") == command
    if folder.exists() and not (same and continues(folder, run.paths)):
        shutil.rmtree(folder)
    WORK.mkdir(parents=True, exist_ok=True)
    last.write_text(command, encoding="utf-8")


def report_text(folder):
    """The tables of a run of penstock-lab, of any verb."""
    from penstock.lab import _cli
    from penstock.lab.errors import LabError
    from penstock.lab.experiment import report, results

    try:
        lines = report.read(folder)
    except LabError as error:
        raise Failed(str(error)) from None
    if lines[-1]["kind"] != "end":
        raise Failed(f"{folder} is not complete")
    for text in results.all_warnings(lines):
        print(f"warning: {text}.", flush=True)
    return getattr(_cli.module(lines[0]["question"]), "table", results.table)(lines)


def printed(words):
    """What a command prints, which is also shown, and its exit code."""
    lines = []
    with subprocess.Popen(words, cwd=record.ROOT, stdout=subprocess.PIPE, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def tables_of(run, text, code):
    """{record: its rows}. A command that misses an aim ends with 1, but its figures count."""
    found = {name: record.rows_of(text, number) for name, number in run.tables.items()}
    short = [name for name, rows in found.items() if len(rows) < 2]
    if short or code not in (0, 1):
        why = f"no table for {', '.join(short)}" if short else "its tables are not kept"
        raise Failed(f"exit code {code}; {why}")
    return found


def measure(run, extra, folder):
    """Runs the command and keeps its records."""
    words = [str(default_photos()) if word == "PHOTOS" else word
             for word in shlex.split(run.command)]
    if run.report:
        forget(run, shlex.join([*words, *extra]))
    before, others, began = load(), cores_used(), time.monotonic()
    stolen = processor_seconds()[1]
    text, code = printed([*words, *extra])
    seconds, after = round(time.monotonic() - began, 1), load()
    stolen = round((processor_seconds()[1] - stolen) / max(seconds, 0.1), 2)
    if stolen > MOST_STOLEN:
        print(f"warning: the host of this virtual machine took {stolen} cores during the run. "
              "Measure again later.", flush=True)
    if run.report:
        text = report_text(record.ROOT / run.report)
    figures = tables_of(run, text, code)
    state = {"load": before, "load_after": after, "others": [others, cores_used()],
             "stolen": stolen, "seconds": seconds}
    for name, rows in figures.items():
        record.write(name, rows, folder, **state)
        if run.picture:
            shutil.copyfile(record.ROOT / run.picture, folder / f"{name}.svg")
    if run.page and folder == record.FOLDER:
        subprocess.run([sys.executable, run.page, run.report, "--busy"], cwd=record.ROOT,
                       check=True)
    if code:
        print(f"{run.name}: exit code {code}; an aim may not be reached: see above", flush=True)


# ---- all runs --------------------------------------------------------------------------------


def chosen_runs(names):
    """The runs of these names, in the order of records.toml."""
    runs = [run for run in record.RUNS if run.minutes]
    known = {name for run in runs for name in (run.name, *run.tables)}
    for name in names:
        if name not in known:
            sys.exit(f"figures: no run is called '{name}'; expected "
                     f"{', '.join(run.name for run in runs)}")
    return [run for run in runs if not names or {run.name, *run.tables} & set(names)]


def duration(minutes):
    whole = round(minutes)
    return f"{whole // 60} h {whole % 60:02} min" if whole >= 60 else f"{whole} min"


def do_list(runs):
    rows = [["run", "records", "command", "minutes", "state"]]
    for run in runs:
        rows.append([run.name, ", ".join(run.tables), f"`{run.command}`",
                     f"{minutes_of(run):.0f}", "done" if is_done(run) else "to be measured"])
    print(record.markdown(rows), end="")
    print(f"\n{len(runs)} runs, about {duration(sum(map(minutes_of, runs)))}; "
          f"{sum(map(is_done, runs))} are done")


def measure_all(runs, options):
    """{run: why it failed}."""
    failed, first = {}, True
    folder = WORK if options.extra else record.FOLDER
    for number, run in enumerate(runs):
        left = duration(sum(map(minutes_of, runs[number:])))
        print(f"== [{number + 1} of {len(runs)}] {run.name}: about {duration(minutes_of(run))}, "
              f"{left} left", flush=True)
        busy = 0 if options.busy else wait_until_idle(load if first else cores_used)
        if busy > MOST_LOAD:
            what = f"load average {busy}" if first else f"other programs use {busy} cores"
            sys.exit(f"figures: {what}: expected at most {MOST_LOAD}. End the other programs and "
                     "start again, or pass --busy: the records then state the load")
        first = False
        try:
            measure(run, options.extra, folder)
        except (Failed, OSError, subprocess.CalledProcessError) as error:
            failed[run.name] = str(error)
            print(f"{run.name} failed: {error}", flush=True)
    return failed


def options_of(arguments):
    middle = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for flag in ("list", "again", "busy"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args(arguments[:middle])
    options.extra = arguments[middle + 1 :]
    return options


def main(arguments=None):
    options = options_of(sys.argv[1:] if arguments is None else arguments)
    runs = chosen_runs(options.names)
    if options.list:
        do_list(runs)
        return 0
    if record.CHANGES in record.commit():
        print("figures: the code differs from its commit. The records say so, and are measured "
              "again next time.", flush=True)
    todo = [run for run in runs if options.again or options.extra or not is_done(run)]
    print(f"{len(todo)} of {len(runs)} runs to measure; the others are done", flush=True)
    try:
        failed = measure_all(todo, options)
    except KeyboardInterrupt:
        sys.exit("figures: interrupted. The same command continues.")
    if not options.extra:
        subprocess.run(["./dev", "record"], cwd=record.ROOT, check=True)
    for name, why in failed.items():
        print(f"failed: {name}: {why}. Measure it again: ./dev figures {name}")
    print(f"{len(todo) - len(failed)} runs measured, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
