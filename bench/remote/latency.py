# SPDX-License-Identifier: Apache-2.0
"""Rounds over loaders that read from a store at a distance."""

import os
import shutil
import statistics
import tempfile

from common import places, say
from penstock.lab.loaders import environments
from penstock.lab.loaders.workers import ask_once

from remote.curl import Curl
from remote.stock import bytes_below

PREPARE_SECONDS, TURN_SECONDS = 3600, 600
PROBE_BYTES = 400e6


class Latency:
    def __init__(self, setting, known, stock, servers, options):
        self.setting, self.stock, self.servers, self.options = setting, stock, servers, options
        self.known = {name: known[name] for name in setting["loaders"]}
        self.lines, self.pythons = [], {}
        self.scratch = places.WORK / "remote-scratch"
        self.logs = places.WORK / "logs"
        for folder in (self.scratch, self.logs):
            folder.mkdir(parents=True, exist_ok=True)

    def note(self, kind, **more):
        self.lines.append({"kind": kind, **more})

    def leave_out(self, name, why):
        say(f"  {name}: absent: {why}")
        self.pythons.pop(name, None)
        self.note("absent", loader=name, reason=str(why))

    # --- processes

    def ask(self, name, seconds, task):
        command = [self.pythons[name], places.BENCH / "remote" / "turn.py",
                   self.known[name]["module"]]
        variables = self.servers.delayed.environment(PYTHONUNBUFFERED="1")
        return ask_once(command, task, seconds, self.logs / f"remote-{name}.log", variables)

    def prepare(self, name):
        spec = self.known[name]
        environment = spec.get("environment")
        self.pythons[name] = (environments.python_of(environment) if environment
                              else self.options.python)
        task = {**self.stock.task(self.setting, spec), "do": "prepare"}
        if spec["stock"] not in ("pack", "objects"):
            task["files"] = self.stock.files * self.stock.copies
        found = self.ask(name, PREPARE_SECONDS, task)
        where = self.stock.pack if spec["stock"] == "pack" else task["out"]
        stored = (sum(map(os.path.getsize, self.stock.files)) if spec["stock"] == "objects"
                  else bytes_below(where))
        self.note("prepared", loader=name, title=spec["title"], stored_mb=stored / 1e6, **found)

    def turn(self, name):
        spec, setting = self.known[name], self.setting
        pinned = spec.get("pinned", False)
        scratch = tempfile.mkdtemp(prefix=f"{name}-", dir=self.scratch)
        task = {**self.stock.task(setting, spec), "do": "turn", "scratch": scratch,
                "seconds": self.options.seconds, "group": 1 if pinned else setting["workers"],
                "decode_core": setting["decode_core"] if pinned else None,
                "client_core": setting.get("client_core", setting["other_core"]),
                **self.more(name)}
        before = self.servers.seconds()
        try:
            found = self.ask(name, TURN_SECONDS, task)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        after = self.servers.seconds()
        found["servers"] = {key: round(after[key] - before[key], 2) for key in after}
        return found

    def more(self, _name):
        """What a scenario tells a loader beside that."""
        return {}

    # --- all

    def start(self):
        for name in list(self.known):
            try:
                self.prepare(name)
            except environments.Absent as why:
                self.leave_out(name, why)
        tasks = [self.stock.task(self.setting, self.known[name]) for name in self.pythons]
        folders = {task["prefix"]: task["out"] for task in tasks}
        for what, folder in {"pack": None, **folders}.items():  # curl reads the pack
            say(f"  uploading {what}")
            self.stock.upload(self.servers, what, folder)
        for name in self.pythons:
            if self.known[name].get("options", {}).get("place") == "index":
                self.stock.index(self.servers, self.known[name]["stock"],
                                 folders[self.known[name]["stock"]])
        self.servers.pin()
        if self.setting["at_once"]:
            self.curl = Curl(self.servers.delayed, self.stock.blocks(), self.stock.folder,
                             self.setting["at_once"], PROBE_BYTES)

    def probe(self, number):
        """What the way carries, with the client on the core of everything else."""
        if not self.setting["at_once"]:
            return ""
        figure = self.curl.run(self.setting["other_core"])
        self.note("bandwidth", round=number, bytes=figure.bytes, seconds=figure.seconds,
                  cpu=figure.cpu)
        return f"curl {figure.bytes / figure.seconds / 1e6:.0f} MB/s, "

    def add_turn(self, name, number):
        found = self.turn(name)
        ids = found.pop("first_ids")
        if self.known[name]["stock"] == "pack":
            found["first_blocks"] = len({i // self.k for i in ids})
        self.note("turn", loader=name, round=number, **found)
        return found["samples"] / found["seconds"]

    def round(self, number):
        carried = self.probe(number)
        rates = {}
        names = list(self.pythons)
        for name in names if number % 2 else reversed(names):
            try:
                rates[name] = self.add_turn(name, number)
            except environments.Absent as why:
                self.leave_out(name, why)
        say(f"  round {number + 1} of {self.options.rounds}: {carried}" +
            ", ".join(f"{name} {rates[name]:.0f}" for name in names if name in rates))

    def all(self):
        self.start()
        self.k = self.stock.block_samples()
        blocks = self.stock.blocks()
        self.note("blocks", count=len(blocks), samples=self.k,
                  mean_bytes=statistics.mean(length for _, _, length in blocks))
        for number in range(self.options.rounds):
            self.round(number)
        return self.lines
