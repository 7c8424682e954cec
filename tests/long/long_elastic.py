# SPDX-License-Identifier: Apache-2.0
"""Training whose number of processes changes: kill -9 at random steps, under torchrun.

Each run trains a small network with examples/python/train_elastic.py on 1 to 4 nodes. Nodes are
lost, processes are killed, nodes join. The group restarts from the last checkpoint with another
number of ranks. In the logged sample numbers, every epoch must have every sample once.
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

SAMPLES, EPOCHS, BATCH = 97, 4, 12


class Torchrun:
    """One run: w0 nodes, then a change at a random step, then w1 nodes."""

    at_once = 4  # they mostly wait

    def __init__(self, folder, pack, dice):
        self.dice, self.save_every = dice, dice.randint(1, 6)
        self.job = tools.ElasticJob(folder, pack, EPOCHS, BATCH, self.save_every, pause=0.4)
        self.kills = 0

    def change(self, before, after):
        agents = self.job.agents
        lost = agents.agents[after:]
        agents.lose(lost)
        self.kills += len(lost)
        for _ in range(after - before):
            agents.start()
        if after > before and self.dice.random() < 0.5:
            self.kills += agents.kill_worker(self.dice)

    def run(self):
        before = self.dice.randint(1, 4)
        after = self.dice.choice([n for n in (1, 2, 3, 4) if n != before])
        self.job.start(before)
        if self.job.running(self.save_every + self.dice.randint(0, 9), before):
            self.change(before, after)
        if self.job.running(self.dice.randint(1, 6), after):
            self.kills += self.job.agents.kill_worker(self.dice)
        return self.job.finish()


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


def sweep_runs(kind, name, want, pack, top):
    sweep, totals, begin = Sweep(name), Totals(), time.monotonic()
    runs = [kind(top / f"{kind.__name__}{i}", pack, random.Random(i)) for i in range(want)]
    with concurrent.futures.ThreadPoolExecutor(kind.at_once) as pool:
        for run, future in [(run, pool.submit(run.run)) for run in runs]:
            sweep.n += 1
            try:
                history = future.result()
            except AssertionError as error:
                sweep.complain(f"run {sweep.n}: {error}")
                continue
            for text in tools.complaints(history, SAMPLES, EPOCHS):
                sweep.complain(f"run {sweep.n}: {text}")
            totals.add(run, history)
            print(f"  {sweep.n} of {want}: {totals}", flush=True)
    sweep.end(f"{want} runs, {totals}, {time.monotonic() - begin:.0f} s")


def main():
    with program.scratch() as scratch:
        top = pathlib.Path(scratch)
        pack = py_tools.write_pack(penstock, top / "a.pen", SAMPLES).path
        sweep_runs(Torchrun, "elastic training under torchrun", scaled(50, 1), pack, top)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
