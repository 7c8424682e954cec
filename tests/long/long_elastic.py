# SPDX-License-Identifier: Apache-2.0
"""Training whose number of processes changes: kill -9 at random steps, with torchrun and Ray Train.

Each run trains a small network with examples/python/train_elastic.py, train_accelerate.py or
train_ray.py on 1 to 4 nodes. Nodes are lost, processes are killed, nodes join. The group restarts
from the last checkpoint with another number of ranks. In the logged sample numbers, every epoch
must have every sample once.

    long_elastic.py [torchrun|accelerate|ray]...
"""

import concurrent.futures
import pathlib
import random
import sys
import time

import _program as program
from _package import penstock
from _program import Sweep, scaled

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import elastic_tools as tools
import py_tools
import ray_tools

SAMPLES, EPOCHS, BATCH = 97, 4, 12


class Run:
    """Some nodes, a change at a random step, then another number of nodes, of which one loses its
    process."""

    def __init__(self, folder, pack, dice):
        self.folder, self.dice, self.save_every = folder, dice, dice.randint(1, 6)
        self.options = [pack, "--epochs", EPOCHS, "--batch-size", BATCH,
                        "--save-every", self.save_every, "--pause", self.pause]
        self.before = dice.randint(1, 4)
        self.after = dice.choice([n for n in (1, 2, 3, 4) if n != self.before])
        self.job, self.kills = None, 0

    def train(self):
        """The history of a job that has been started."""
        if self.job.running(self.save_every + self.dice.randint(0, 9), self.before):
            self.change()
        if run := self.job.running(self.dice.randint(1, 6), self.after):
            self.kill_worker(run)
        return self.job.finish()

    def change(self):
        raise NotImplementedError

    def kill_worker(self, run):
        tools.kill(self.dice.choice(run.pids()))
        self.kills += 1


class Torchrun(Run):
    name, script, pause, at_once = "torchrun", "train_elastic.py", 0.4, 4  # they mostly wait

    def run(self):
        self.job = tools.ElasticJob(self.folder, self.script, *self.options)
        self.job.start(self.before)
        return self.train()

    def change(self):
        agents = self.job.agents
        lost = agents.agents[self.after:]
        agents.lose(lost)
        self.kills += len(lost)
        for _ in range(self.after - self.before):
            agents.start()
        if self.after > self.before and self.dice.random() < 0.5:
            self.kills += agents.kill_worker(self.dice)


class Accelerate(Torchrun):
    name, script = "Accelerate", "train_accelerate.py"


class RayTrain(Run):
    """The number of workers follows the nodes within 30 s, so the pause is longer."""

    name, pause, at_once = "Ray Train", 2.0, 1

    def run(self):
        with ray_tools.cluster(self.before) as self.cluster:
            self.job = tools.RayJob(self.folder, self.cluster.address, *self.options)
            self.job.start()
            return self.train()

    def change(self):
        for node in list(self.cluster.worker_nodes)[self.after:]:
            ray_tools.lose_node(self.cluster, node)
            self.kills += 1
        for _ in range(self.after - self.before):
            ray_tools.add_node(self.cluster)


class Totals:
    def __init__(self):
        self.kills = self.steps = self.epochs = self.mixed = self.again = 0

    def add(self, run, history):
        self.kills += run.kills
        self.steps += len(history)
        self.again += run.job.relaunched
        self.epochs += EPOCHS
        worlds = {(epoch, world) for _, epoch, _, world in history}
        self.mixed += len(worlds) - len({epoch for epoch, _ in worlds})

    def __str__(self):
        return (f"{self.kills} kills, {self.epochs} epochs, {self.mixed} changes of the world size "
                f"within an epoch, {self.steps} steps, {self.again} jobs started again")


def calls(runs, at_once):
    """(run, function that returns its history) of each. Ray starts in the main thread only."""
    if at_once == 1:
        yield from ((run, run.run) for run in runs)
        return
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        yield from [(run, pool.submit(run.run).result) for run in runs]


def sweep_runs(kind, want, pack, top):
    sweep, totals = Sweep(f"elastic training under {kind.name}"), Totals()
    begin = time.monotonic()
    runs = [kind(top / f"{kind.__name__}{i}", pack, random.Random(i)) for i in range(want)]
    for run, call in calls(runs, kind.at_once):
        sweep.n += 1
        try:
            history = call()
        except AssertionError as error:
            sweep.complain(f"run {sweep.n}: {error}")
            continue
        for text in tools.complaints(history, SAMPLES, EPOCHS):
            sweep.complain(f"run {sweep.n}: {text}")
        totals.add(run, history)
        print(f"  {sweep.n} of {want}: {totals}", flush=True)
    sweep.end(f"{want} runs, {totals}, {time.monotonic() - begin:.0f} s")


def main(names):
    missing = ray_tools.missing_ray()
    with program.scratch() as scratch:
        top = pathlib.Path(scratch)
        pack = py_tools.write_pack(penstock, top / "a.pen", SAMPLES).path
        for kind, want in ((Torchrun, scaled(50, 1)), (Accelerate, scaled(10, 0)),
                           (RayTrain, scaled(0 if missing else 10, 0))):
            if want and (not names or kind.name.partition(" ")[0].lower() in names):
                sweep_runs(kind, want, pack, top)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
