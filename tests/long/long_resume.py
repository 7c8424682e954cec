# SPDX-License-Identifier: Apache-2.0
"""Runs that are interrupted, inputs that change, the same command again: the pack has to be that of
a fresh run, byte for byte.

The cells: what changes x what is packed x where to x where the run was interrupted. Full: all of
them, in both orders; sample: every change of every kind of input once.
"""

import itertools
import pathlib
import random
import shutil
import subprocess
import sys

import _program as program
import _resume_inputs as inputs
from _program import Sweep

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import net_stage

BUCKET = "packs"
N = 10
POINTS = ("before the first shard", "between", "before publishing")
PLACES = ("local", "s3", "s3, another machine", "tasks")
RENAMES = "rename,renameat,renameat2"
# Tasks take the plan as it is, and a folder does not show what has come into it since.
NOT_SEEN_BY_TASKS = {("added", kind) for kind in ("folder", "frames", "videos", "kept")}


def without_folders(tree):
    return {name: data for name, data in (tree or {}).items() if data is not None}


class Local:
    env = None

    def __init__(self, top):
        self.top = top

    def out(self, name):
        return str(self.top / f"{name}.pen")

    def tree(self, name):
        return without_folders(program.tree(self.out(name)))

    def remove(self, name):
        shutil.rmtree(self.out(name), ignore_errors=True)


class Store:
    def __init__(self, server, home):
        self.server, self.client = server, server.boto3(retries=5)
        self.use(home)

    def use(self, home):
        self.env = self.server.environment(HOME=str(home))

    def out(self, name):
        return f"s3://{BUCKET}/{name}.pen"

    def names(self, name):
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{name}.pen/")
        return [o["Key"] for o in found.get("Contents", ())]

    def tree(self, name):
        return {key.split("/", 1)[1]:
                self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
                for key in self.names(name)}

    def remove(self, name):
        for key in self.names(name):
            self.client.delete_object(Bucket=BUCKET, Key=key)


def renames(command, env, log):
    """How many files get their final name in a run."""
    subprocess.run(["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={RENAMES}", program.BIN,
                    *map(str, command)], env=env, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return sum("rename" in line for line in log.read_text().splitlines())


def kill_at_rename(command, env, n):
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={RENAMES}", "-e",
         f"inject={RENAMES}:signal=SIGKILL:when={n}", program.BIN, *map(str, command)],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=program.TIME_LIMIT,
        check=False)
    return done.returncode in (-9, 137)


class Cell:
    """One combination; `n_resumed` counts what was taken over, over all cells."""

    n_kept = 0

    def __init__(self, stage, what, kind, place, point, order):
        self.what, self.kind, self.place, self.point, self.order = what, kind, place, point, order
        self.stage = stage
        self.where = stage.store if place.startswith("s3") else stage.local
        self.source = inputs.Inputs(kind, stage.top / "in", stage.cache)
        self.name = f"{what}, {kind}, {place}, {point}, {order}"

    def command(self, verb, name, *more):
        return [verb, *self.source.arguments(), "-o", self.where.out(name),
                *self.source.options(self.order), *more]

    def at(self):
        """Which input changes: so that some shards hold, and some do not."""
        if self.what == "mended":
            return {POINTS[0]: 0, POINTS[1]: 5, POINTS[2]: N - 1}.get(self.point, 5)
        return 5

    def interrupt(self):
        """The first run, up to the point."""
        command = self.command("pack", "x")
        if self.what == "mended":
            code, _ = program.run(*command, env=self.where.env)
            return code == 1
        # The sources and the plan get their names first; then each shard, which in a store has no
        # name of its own, and the list of those that are finished.
        first = 3
        n = {POINTS[0]: first, POINTS[1]: first + (2 if self.place.startswith("s3") else 4)}.get(
            self.point) or self.stage.renames(self, command)
        return kill_at_rename(command, self.where.env, n)

    def run(self):
        """What is wrong, or None."""
        self.source.remove()
        for name in ("x", "fresh"):
            self.where.remove(name)
        items = inputs.first_items(N)
        if self.what == "mended":
            items[sorted(items)[self.at()]].size = 0
        self.source.put(items)
        after = inputs.change(items, self.what, self.at())
        if self.place == "tasks":
            return self.run_tasks(after)
        if not self.interrupt():
            return "the first run was not interrupted"
        self.source.put(after, keep_times=self.what == "replaced")
        if self.place == "s3, another machine":
            self.where.use(self.stage.new_home())
        code, text = program.run(*self.command("pack", "x"), env=self.where.env)
        if code != 0:
            return f"run again: {text}"
        resumed = "resumed: " in text
        Cell.n_kept += resumed
        if self.place == "s3, another machine":
            if resumed:
                return "shards of another machine were taken over"
            # What the other one left under names of its own plan, only gc can tell from the pack.
            code, text = program.run("gc", self.where.out("x"), env=self.where.env)
            if code != 0:
                return f"gc: {text}"
        code, text = program.run(*self.command("pack", "fresh"), env=self.where.env)
        if code != 0:
            return f"fresh: {text}"
        return program.difference(self.where.tree("fresh"), self.where.tree("x"))

    # ---- tasks -----------------------------------------------------------------------------------

    def tasks(self, name, plan=True):
        """Plan, both tasks, finalise; the first failure's text, or None."""
        steps = [self.command("pack", name, "--task", f"{i}/2") for i in range(2)]
        steps.append(["finalise", self.where.out(name)])
        for step in ([self.command("plan", name)] if plan else []) + steps:
            code, text = program.run(*step)
            if code != 0:
                return text
        return None

    def run_tasks(self, after):
        program.must(*self.command("plan", "x"))
        program.run(*self.command("pack", "x", "--task", "0/2"))
        self.source.put(after, keep_times=self.what == "replaced")
        if (self.what, self.kind) not in NOT_SEEN_BY_TASKS:
            text = self.tasks("x", plan=False)
            if not text:
                return "tasks and finalise did not notice"
            if "'penstock plan'" not in text:
                return f"without advice: {text}"
        wrong = self.tasks("x") or self.tasks("fresh")
        return wrong or program.difference(self.where.tree("fresh"), self.where.tree("x"))


class Stage:
    """What the cells share."""

    def __init__(self, top, server):
        self.top, self.counts, self.homes = top, {}, 0
        self.cache = top / "videos"
        self.cache.mkdir()
        self.local = Local(top)
        self.store = Store(server, self.new_home())

    def new_home(self):
        self.homes += 1
        home = self.top / f"home{self.homes}"
        home.mkdir()
        return home

    def renames(self, cell, command):
        key = (cell.kind, cell.place.startswith("s3"), cell.order)
        if key not in self.counts:
            self.counts[key] = renames(command, cell.where.env, self.top / "calls")
            cell.where.remove("x")
        return self.counts[key]


def cells(kinds):
    """Tasks have no point of their own: the change comes between two of them."""
    for what, kind, place in itertools.product(inputs.CHANGES, kinds, PLACES):
        points = {"tasks": ("between tasks",), "s3, another machine": POINTS[1:2]}.get(
            place, POINTS)
        for point, order in itertools.product(points, ("source", "shuffled")):
            yield what, kind, place, point, order


def chosen(kinds):
    every = list(cells(kinds))
    if program.FULL:
        return every
    dice = random.Random(12)
    by_pair = {}
    for cell in every:
        by_pair.setdefault(cell[:2], []).append(cell)
    return [dice.choice(found) for found in by_pair.values()]


def main():
    if not shutil.which("strace"):
        print("no strace here: skipped\n0 passed, 0 failed")
        return 77
    kinds = [k for k in inputs.KINDS if k not in ("videos", "kept") or shutil.which("ffmpeg")]
    with program.scratch() as top, net_stage.S3Server(buckets=[BUCKET]) as server:
        stage = Stage(pathlib.Path(top), server)
        for place in PLACES:
            sweep = Sweep(f"resume, {place}")
            for arguments in chosen(kinds):
                if arguments[2] != place:
                    continue
                sweep.n += 1
                cell = Cell(stage, *arguments)
                wrong = cell.run()
                if wrong:
                    sweep.complain(f"{cell.name}: {wrong}")
            sweep.end(f"{sweep.n} cells")
    print(f"in {Cell.n_kept} cells finished shards were kept")
    if not Cell.n_kept:
        print("  none was ever kept: that is not resuming")
        return 1
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
