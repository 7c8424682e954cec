# SPDX-License-Identifier: Apache-2.0
"""Rounds over loaders that feed a training step of fixed time, what their traces show, and the
picture of both."""

import pathlib
import statistics
import sys

from common import places, say
from penstock.lab.loaders import environments
from penstock.lab.loaders.workers import ask_once

sys.path.insert(0, str(places.BUILD / "python"))
from penstock import _trace_file, _trace_summary
from penstock.lab import timeline

TURN_SECONDS = 600


def events_of(trace, worker_traces):
    """Of a process and its workers, as threads of one process; times count from its first span."""
    events = _trace_file.read(trace).events
    pid = next(event["pid"] for event in events if event["ph"] == "X")
    for number, path in enumerate(worker_traces):
        for event in _trace_file.read(path).events:
            if event["ph"] == "X":
                events.append({**event, "pid": pid, "tid": -1 - number})
        events.append({"ph": "M", "pid": pid, "tid": -1 - number, "name": "thread_name",
                       "args": {"name": f"worker {number}"}})
    begin = min(event["ts"] for event in events if event["ph"] == "X")
    return [{**event, "ts": event["ts"] - begin} if "ts" in event else event for event in events]


def cut(events):
    """Without what threads did after the last training step."""
    end = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X" and e["name"] == "run_batch")
    for event in events:
        if event["ph"] != "X":
            yield event
        elif event["ts"] < end:
            yield {**event, "dur": min(event["dur"], end - event["ts"])}


def figures_of(events):
    (process,) = _trace_summary.analyse(events)
    figures, waits = process.figures, process.spans["next_data"]
    first = min((e for e in events if e["name"] == "next_data"), key=lambda e: e["ts"])
    return {"seconds": figures["elapsed time"], "idle": figures["accelerator idle"],
            "first": first["dur"] / 1e6, "longest": waits["max"]}


def picture(title, parts):
    """SVG of [(name, events)], one above the other on one time axis."""
    events = []
    for pid, (name, part) in enumerate(parts, 1):
        events += [{**event, "pid": pid} for event in part if event["name"] != "process_name"]
        events.append({"ph": "M", "pid": pid, "tid": 0, "name": "process_name",
                       "args": {"name": name}})
    return timeline.plot(events, title).svg()


class Idle:
    def __init__(self, setting, known, stock, servers, options):
        self.setting, self.stock, self.servers, self.options = setting, stock, servers, options
        self.known = {name: known[name] for name in setting["loaders"]}
        self.logs, self.traces = places.WORK / "logs", places.WORK / "idle"
        for folder in (self.logs, self.traces):
            folder.mkdir(parents=True, exist_ok=True)

    def turn(self, name, number):
        """(its figures, its events)"""
        spec, trace = self.known[name], self.traces / f"{name}-{number}.json.gz"
        for old in self.traces.glob(f"{name}-{number}.*"):
            old.unlink()
        task = {**self.stock.task(self.setting, spec), "seconds": self.options.seconds,
                "step_ms": self.setting["step_ms"], "trace": str(trace),
                "worker_trace": str(trace.with_suffix("").with_suffix(".worker{}.json.gz")),
                "group": self.setting["workers"] if spec["stock"] == "objects" else 1}
        command = [self.options.python, pathlib.Path(__file__).with_name("idle_turn.py"),
                   spec["module"]]
        variables = self.servers.delayed.environment(PYTHONUNBUFFERED="1")
        found = ask_once(command, task, TURN_SECONDS, self.logs / f"idle-{name}.log", variables)
        workers = sorted(self.traces.glob(f"{name}-{number}.worker*"))
        events = list(cut(events_of(trace, workers)))
        return {**found, **figures_of(events)}, events

    def round(self, number, turns):
        names = list(self.known)
        for name in names if number % 2 else reversed(names):
            found, events = self.turn(name, number)
            say(f"  round {number + 1} of {self.options.rounds}: {name}: idle {found['idle']:.1%}, "
                f"{found['samples'] / found['seconds']:.0f} images/s")
            turns[name].append((found, events))

    def all(self):
        """{loader: [(figures, events) of each round]}"""
        for what in ("pack", "objects"):
            say(f"  uploading {what}")
            self.stock.upload(self.servers, what, None)
        turns = {name: [] for name in self.known}
        for number in range(self.options.rounds):
            self.round(number, turns)
        for name, found in turns.items():
            wrong = [f for f, _ in found if f["again"] or f["strange"] or f["dropped"]]
            if wrong:
                raise environments.Absent(f"{name}: samples twice, or events missing: {wrong}")
        return turns


def spread(values, form):
    low, high = min(values), max(values)
    return f"{form.format(statistics.median(values))} ({form.format(low)}-{form.format(high)})"


def rows_of(turns, known, store):
    """The table: one row for each loader, medians with the lowest and highest round."""
    rows = [[f"loader; {store}", "accelerator idle %", "images/s",
             "first batch s", "longest wait s"]]
    for name, found in turns.items():
        figures = [figure for figure, _ in found]
        rows.append([known[name]["title"],
                     spread([100 * f["idle"] for f in figures], "{:.1f}"),
                     spread([f["samples"] / f["seconds"] for f in figures], "{:,.0f}"),
                     spread([f["first"] for f in figures], "{:.2f}"),
                     spread([f["longest"] for f in figures], "{:.2f}")])
    return rows


def picture_of(turns, known):
    """Of the round with the median idle time of each loader."""
    parts = []
    for name, found in turns.items():
        figure, events = sorted(found, key=lambda pair: pair[0]["idle"])[len(found) // 2]
        title = f"{known[name]['title']}: accelerator idle {figure['idle']:.1%} of the time"
        parts.append((title, events))
    return picture("What each thread does", parts)
