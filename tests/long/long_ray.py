# SPDX-License-Identifier: Apache-2.0
"""Packing on a Ray cluster of four nodes, into a directory and into an object store.

In each round `penstock ray pack` runs, and at random moments raylets are killed with -9 (their
nodes are replaced), the driver is killed with -9 and started again, a second driver packs the same,
and tasks are run by hand beside it. In the end the pack has the bytes of an undisturbed run without
Ray, verify finds no error, and gc leaves nothing but the pack.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import _program as program
from _package import encoded, np, painted, photo_files
from _program import Sweep, scaled
from _ray_places import Directory, Store, server, tree

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import ray_tools

NODES, TASKS, LIMIT_S = 4, 16, 1800
MADE = 24
# Raylets and drivers that are killed, second drivers, tasks by hand. The first round of the full
# counts measures how long a run takes.
ROUNDS = scaled([(0, 0, 0, 0), (4, 0, 0, 0), (3, 0, 1, 3), (3, 2, 0, 3)], [(1, 1, 1, 1)])
FIRST_LENGTH_S = scaled(0, 15)
# What a process beside the driver prints if it starts too early, or is overtaken.
UNTIMELY = ("the pack already exists", "no plan found", "has published the pack in the meantime")


def make_inputs(top, each):
    """Photographs, or some that are made here, under `each` names."""
    top.mkdir()
    files = photo_files(0) if program.FULL else []
    if not files:
        rng = np.random.default_rng(17)
        files = [top.parent / f"made{i}.jpg" for i in range(MADE)]
        for file in files:
            file.write_bytes(encoded(painted(rng, 1200, 900), "JPEG", quality=90))
    for file in files:
        folder = top / file.parent.name
        folder.mkdir(exist_ok=True)
        first = folder / f"{file.stem}-00{file.suffix}"
        shutil.copyfile(file, first)
        for k in range(1, each):
            os.link(first, folder / f"{file.stem}-{k:02}{file.suffix}")
    return len(files) * each


class Nodes:
    """The cluster. Each node has a directory for work files of its own, like a machine."""

    def __init__(self, running, top, dice):
        self.running, self.top, self.dice, self.started = running, top, dice, 0
        for _ in range(NODES):
            self.add()

    def add(self):
        os.environ["XDG_CACHE_HOME"] = str(self.top / f"node{self.started}")
        ray_tools.add_node(self.running)
        self.started += 1

    def kill(self):
        """kill -9 of a raylet, now and then with all of its processes, as if its machine failed."""
        node = self.dice.choice(list(self.running.worker_nodes))
        pid = ray_tools.raylet(node)
        lost = ray_tools.children(pid) if self.dice.random() < 0.5 else []
        for one in [pid, *lost]:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.running.remove_node(node)
        self.add()

    def clear(self):
        for path in self.top.glob("node*"):
            shutil.rmtree(path, ignore_errors=True)


def users_of(place):
    """Processes of penstock that name the pack."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and str(place.out) in ray_tools.words(int(entry.name)):
            found.append(int(entry.name))
    return found


class Round:
    """One pack, and what happens to it."""

    def __init__(self, place, nodes, source, complain):
        self.place, self.nodes, self.complain = place, nodes, complain
        self.dice, self.beside, self.counts = nodes.dice, [], [0, 0, 0, 0]
        self.shared = (source, "-o", place.out)
        self.command = [sys.executable, "-m", "penstock", "ray", "pack", *self.shared, "--tasks",
                        TASKS, "--address", nodes.running.address]

    def start(self, command):
        return subprocess.Popen([*map(str, command)], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def raylet(self):
        self.nodes.kill()

    def restart(self):
        self.driver.kill()
        self.driver.communicate()
        self.driver = self.start(self.command)

    def second(self):
        more = self.place.other_machine(len(self.beside))
        self.beside.append(self.start([*self.command, *more]))

    def task(self):
        more = self.place.other_machine(len(self.beside))
        number = self.dice.randrange(TASKS)
        self.beside.append(self.start(
            [program.BIN, "pack", *self.shared, "--task", f"{number}/{TASKS}", "--wait", "600",
             "--threads", "1", *more]))

    def run(self, counts, length):
        """Within `length` seconds, do each of the four things so many times."""
        calls = (self.raylet, self.restart, self.second, self.task)
        events = sorted((self.dice.random() * length, kind)
                        for kind, n in enumerate(counts) for _ in range(n))
        self.driver, begin = self.start(self.command), time.monotonic()
        for moment, kind in events:
            while time.monotonic() < begin + moment and self.driver.poll() is None:
                time.sleep(0.05)
            if self.driver.poll() is not None:
                break
            calls[kind]()
            self.counts[kind] += 1
        self.end()
        return time.monotonic() - begin

    def end(self):
        for process in (self.driver, *self.beside):
            try:
                _, text = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                text = "hangs"
            if process.returncode != 0 and not any(words in text for words in UNTIMELY):
                self.complain(f"{' '.join(map(str, process.args[:5]))}: {process.returncode}: "
                              f"{text[-2000:]}")
        deadline = time.monotonic() + 120
        while (users := users_of(self.place)) and time.monotonic() < deadline:
            time.sleep(0.2)
        if users:
            self.complain(f"processes still run: {[ray_tools.words(pid) for pid in users]}")

    def check(self, expected):
        for command in ("gc", "verify"):
            code, text = program.run(command, self.place.out, limit=LIMIT_S)
            if code != 0:
                self.complain(f"{command}: {code}: {text}")
        wrong = program.difference(expected, self.place.tree())
        if wrong:
            self.complain(wrong)
        if self.place.uploads():
            self.complain("gc leaves uploads")


def undisturbed(top, source):
    """The same tasks without Ray."""
    out = top / "near.pen"
    must = [("plan", source, "-o", out),
            *(("pack", source, "-o", out, "--task", f"{i}/{TASKS}") for i in range(TASKS)),
            ("finalise", out)]
    for command in must:
        code, text = program.run(*command, limit=LIMIT_S)
        if code != 0:
            sys.exit(f"cannot go on: {command}: {text}")
    found = tree(out)
    shutil.rmtree(out)
    return found


def sweep_place(place, nodes, source, expected):
    sweep, begin = Sweep(f"packing on Ray into a {place.name}"), time.monotonic()
    totals, length, waiting, rounds = [0, 0, 0, 0], FIRST_LENGTH_S, list(ROUNDS), 0
    while waiting:
        def complain(text, number=rounds):
            sweep.complain(f"round {number}: {text}")

        want = waiting.pop(0)
        place.clear()
        nodes.clear()
        one = Round(place, nodes, source, complain)
        seconds = one.run(want, length)
        one.check(expected)
        length = min(length or seconds, seconds)
        totals = [a + b for a, b in zip(totals, one.counts)]
        print(f"  {place.name}, round {rounds}: raylets, drivers, second drivers, tasks: "
              f"{one.counts} of {list(want)}, {seconds:.0f} s", flush=True)
        rest = [a - b for a, b in zip(want, one.counts)]
        if any(rest):  # the driver was faster
            waiting.append(rest)
        rounds += 1
    counts = "{} raylets and {} drivers killed, {} second drivers, {} tasks by hand".format(*totals)
    sweep.end(f"{counts}, {rounds} packs, {time.monotonic() - begin:.0f} s")
    place.clear()


def main():
    reason = ray_tools.missing_ray()
    if reason:
        print(f"{reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    with program.scratch() as scratch, server() as store:
        top = pathlib.Path(scratch)
        env = store.environment(PYTHONPATH=str(program.BUILD / "python"), HOME=str(top / "home"))
        os.environ.clear()
        os.environ.update(env)
        n = make_inputs(top / "in", 20 if program.FULL else 6)
        expected = undisturbed(top, top / "in")
        print(f"packing on Ray: {n} images, {type(store).__name__}", flush=True)
        with ray_tools.cluster(0) as running:
            nodes = Nodes(running, top, random.Random(17))
            # test_ray_pack.py has a short form of the directory.
            places = [Directory(top)] * program.FULL + [Store(store, top)]
            for place in places:
                sweep_place(place, nodes, top / "in", expected)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
