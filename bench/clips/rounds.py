# SPDX-License-Identifier: Apache-2.0
"""Turns of all loaders, there and back again."""

import os

import numpy as np
import tomllib
from common import places, say
from penstock.lab.loaders import environments
from penstock.lab.loaders.workers import ask_once

TURN_SECONDS = 1800


def known():
    text = (places.BENCH / "clips" / "loaders.toml").read_text(encoding="utf-8")
    return {name: {"environment": None, "options": {}, **spec}
            for name, spec in tomllib.loads(text).items()}


class Rounds:
    def __init__(self, names, place, task, options):
        self.place, self.options = place, options
        self.specs = {name: known()[name] for name in names}
        self.task = {**task, "root": str(place.root), "build": str(places.BUILD)}
        self.lines, self.pythons = [], {}
        self.logs = places.WORK / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def note(self, kind, **more):
        self.lines.append({"kind": kind, **more})

    def leave_out(self, name, why):
        say(f"  {name}: absent: {why}")
        self.pythons.pop(name, None)
        self.note("absent", loader=name, title=self.specs[name]["title"], reason=str(why))

    def ask(self, name, task):
        spec = self.specs[name]
        command = [self.pythons[name], places.BENCH / "clips" / "turn.py", spec["module"]]
        return ask_once(command, {**task, "options": spec["options"]}, TURN_SECONDS,
                        self.logs / f"clips-{name}.log")

    def prepare(self):
        """Who is there, and how far the pixels of the first batch are from those of the files."""
        reference = None
        for name in ("jpeg", *[name for name in self.specs if name != "jpeg"]):
            if name not in self.specs:
                continue
            save = self.logs / f"clips-{name}-{os.getpid()}.npy"
            try:
                where = self.specs[name]["environment"]
                self.pythons[name] = (
                    environments.python_of(where) if where else self.options.python)
                found = self.ask(name, {**self.task, "do": "check", "centre": True,
                                        "shuffle": False, "save": str(save)})
            except environments.Absent as why:
                self.leave_out(name, why)
                continue
            pixels = np.load(save)
            save.unlink()
            if name == "jpeg":
                reference = pixels
            off = {}
            if reference is not None:
                apart = np.abs(pixels - reference) * 255
                off = {"mean": float(apart.mean()), "max": float(apart.max())}
            self.note("prepared", loader=name, title=self.specs[name]["title"],
                      versions=found["versions"], shape=found["shape"], **off)

    def turn(self, name, number):
        before = self.place.counts()
        found = self.ask(name, self.task)
        after = self.place.counts()
        found.pop("versions")
        counts = {key: after[key] - before[key] for key in after}
        self.note("turn", loader=name, round=number, **found, **counts)
        more = ", ".join(f"{key} {value:,}" for key, value in counts.items())
        say(f"  round {number + 1}: {name}: {found['seconds']:.2f} s {more}")

    def all(self):
        self.prepare()
        for number in range(self.options.rounds):
            order = [name for name in self.specs if name in self.pythons]
            for name in order if number % 2 == 0 else order[::-1]:
                try:
                    self.turn(name, number)
                except environments.Absent as why:
                    self.leave_out(name, why)
        return self.lines
