# SPDX-License-Identifier: Apache-2.0
"""A run: all loaders of a scenario prepared, checked, and measured in turns A B C A B C."""

import hashlib
import json
import subprocess

from compare import environments, figures, places, scenario
from compare.workers import MemoryWatch, Worker

CASES, SEED = 48, 7


def say(text):
    print(text, flush=True)


class Set:
    """The photographs of a run, and what is made of them once: in a folder named by their names."""

    def __init__(self, files, python, work=places.WORK):
        self.files, self.python = [str(file) for file in files], python
        name = hashlib.sha256("\n".join(self.files).encode()).hexdigest()[:12]
        self.folder = work / "sets" / f"{len(files)}-{name}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def listing(self, name, files):
        path = self.folder / f"{name}.txt"
        path.write_text("\n".join(files) + "\n", encoding="utf-8")
        return str(path)

    def reference(self, what, **request):
        script = places.BENCH / "compare" / "reference.py"
        done = subprocess.run([self.python, script, what], input=json.dumps(request), text=True,
                              stdout=subprocess.PIPE, check=False)
        if done.returncode:
            raise SystemExit(f"{script} {what} ended with {done.returncode}")
        return done.stdout

    def encoded(self, max_side, quality):
        """(name, files) of the photographs encoded anew."""
        name = f"encoded-{max_side}-{quality}"
        out = self.folder / name
        if not (out / "done").exists():
            self.reference("encoded", files=self.files, out=str(out), max_side=max_side,
                           quality=quality)
        return name, [str(file) for file in sorted(out.glob("*.jpg"))]

    def progressive(self):
        """The photographs as progressive files with the same pixels."""
        out = self.folder / "progressive"
        out.mkdir(exist_ok=True)
        files = [out / f"{n:06}.jpg" for n in range(len(self.files))]
        for source, file in zip(self.files, files):
            if not file.exists():
                part = file.with_suffix(".part")
                subprocess.run(["jpegtran", "-progressive", "-copy", "all", "-outfile", part,
                                source], check=True)
                part.rename(file)
        return [str(file) for file in files]

    def cases(self, size, short):
        """Photographs and boxes for the check of pixels; those of the reference lie beside them."""
        text = self.reference("cases", files=self.files, work=str(self.folder), size=size,
                              short=short, seed=SEED, count=CASES, build=str(places.BUILD))
        return json.loads(text)

    def task(self, setting, cases):
        """What a worker is told; its loader's options are added to it."""
        name, files, originals = "asis", self.files, self.files
        if setting["stored"] == "encoded":
            name, files = self.encoded(setting["max_side"], setting["quality"])
        if setting["stored"] == "progressive":
            name, files = "progressive", self.progressive()
            originals = files
        keys = ("transform", "stored", "check", "size", "short", "quality", "max_side", "batch",
                "threads")
        return {**{key: setting[key] for key in keys}, "set": name, "work": str(self.folder),
                "list": self.listing(name, files), "originals": originals, "cases": cases,
                "seed": SEED, "build": str(places.BUILD)}


class Run:
    def __init__(self, setting, photos, rounds, seconds):
        self.setting, self.photos = setting, photos
        self.rounds, self.seconds = rounds, seconds
        self.workers, self.lines, self.absent, self.passes = {}, [], {}, {}

    def note(self, kind, **more):
        self.lines.append({"kind": kind, **more})

    def leave_out(self, name, why):
        say(f"  {name}: absent: {why}")
        self.absent[name] = str(why)
        self.note("absent", loader=name, reason=str(why))
        if name in self.workers:
            self.workers.pop(name).stop()

    def start(self, name, spec, task):
        logs = places.WORK / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        try:
            python = self.photos.python
            if spec["environment"]:
                python = environments.python_of(spec["environment"])
            worker = self.workers[name] = Worker(name, spec, python, logs / f"{name}.log")
            ready = worker.prepare({**task, "options": spec["options"]})
            check = worker.check(self.photos.folder / f"{task['check']}.npy")
            with MemoryWatch(worker.process.pid) as memory:
                first = worker.turn(passes=1)
                again = worker.turn(passes=1)
        except environments.Absent as why:
            self.leave_out(name, why)
            return
        self.passes[name] = figures.passes_for(again["seconds"], self.seconds)
        self.note("prepared", loader=name, title=spec["title"], **ready)
        self.note("check", loader=name, **check)
        self.note("first", loader=name, memory_mb=round(memory.peak / 1e6), **first)
        say(f"  {name}: ready; first epoch {first['seconds']:.2f} s, then {again['seconds']:.2f} s")

    def prepare(self):
        size, short = self.setting["size"], self.setting["short"]
        task = self.photos.task(self.setting, self.photos.cases(size, short))
        known = scenario.loaders()
        for name in self.setting["loaders"]:
            self.start(name, known[name], task)

    def measure(self):
        for number in range(self.rounds):
            for name in list(self.workers):
                try:
                    turn = self.workers[name].turn(passes=self.passes[name])
                except environments.Absent as why:
                    self.leave_out(name, why)
                    continue
                self.note("turn", loader=name, round=number, **turn)
            say(f"  round {number + 1} of {self.rounds}: " + ", ".join(
                f"{line['loader']} {line['samples'] / line['seconds']:.0f}"
                for line in self.lines if line["kind"] == "turn" and line["round"] == number))

    def all(self):
        try:
            self.prepare()
            self.measure()
        finally:
            for worker in self.workers.values():
                worker.stop()
        return self.lines
