# SPDX-License-Identifier: Apache-2.0
"""Elastic training as a user starts it: torchrun agents that come and go, processes that are
killed, and the account of all samples from the logs of examples/python/common.py."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
SECONDS = 600  # for a run that takes 20 on a machine with nothing else to do
# Nodes that may still join are waited for 2 s instead of 30.
RENDEZVOUS = "last_call_timeout=2,keep_alive_interval=2,keep_alive_max_attempt=5"


# ---- what was trained on


class Run:
    """One process group, from its start to its end: the log files of its ranks."""

    def __init__(self):
        self.heads, self.rows, self.done = {}, {}, set()

    def read(self, path):
        # The last line of a process that was killed may be incomplete.
        lines = [json.loads(line) for line in path.read_text().splitlines(True)
                 if line.endswith("\n")]
        if not lines:
            return
        head, *rows = lines
        self.heads[head["rank"]] = head
        if rows and "done" in rows[-1]:
            self.done.add(head["rank"])
            rows.pop()
        self.rows[head["rank"]] = {row["step"]: row for row in rows}

    @property
    def world(self):
        return next(iter(self.heads.values()))["world"]

    @property
    def resumed(self):
        """(run, step) of the checkpoint: the same on every rank."""
        found = {tuple(head["resumed"] or ()) for head in self.heads.values()}
        assert len(found) == 1, found
        return found.pop()

    @property
    def steps(self):
        return max((step for rows in self.rows.values() for step in rows), default=0)

    @property
    def is_done(self):
        return len(self.done) == self.world

    def pids(self):
        return [head["pid"] for head in self.heads.values()]


def read_runs(log):
    """{name: Run} of all runs in a directory."""
    runs = {}
    for path in log.glob("*.*"):
        runs.setdefault(path.name.rpartition(".")[0], Run()).read(path)
    return {name: run for name, run in runs.items() if run.heads}


def history(runs):
    """[(step, epoch, samples, world)]: the steps that led to the final model. A checkpoint names
    its run, so that steps after the checkpoint that the next run resumed do not count."""
    name = next(name for name, run in runs.items() if run.is_done)
    made, last = [], None
    while name:
        run = runs[name]
        parent, first = run.resumed or (None, 0)
        end = run.steps if last is None else last
        for step in range(first + 1, end + 1):
            rows = [run.rows[rank][step] for rank in range(run.world)]
            (epoch,) = {row["epoch"] for row in rows}
            samples = [sample for row in rows for sample in row["samples"]]
            made.append((step, epoch, samples, run.world))
        name, last = parent, first
    return sorted(made)


def complaints(steps, samples, epochs):
    """What is wrong with a history: every epoch has every sample once."""
    found = []
    if [step for step, *_ in steps] != list(range(1, len(steps) + 1)):
        found.append("steps are missing or repeated")
    if sorted({epoch for _, epoch, _, _ in steps}) != list(range(epochs)):
        found.append("epochs are missing")
    for epoch in range(epochs):
        counts = Counter(s for _, e, part, _ in steps if e == epoch for s in part)
        lost, repeated = samples - len(counts), sum(counts.values()) - len(counts)
        if lost or repeated:
            found.append(f"epoch {epoch}: {lost} samples lost, {repeated} repeated")
    return found


# ---- torchrun


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def kill(pid):
    """kill -9; it may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Agents:
    """torchrun with --nnodes 1:4 on this machine: each agent is a node with one process."""

    def __init__(self, folder, *command):
        self.folder, self.command = folder, command
        self.agents = []
        self.port = free_port()
        self.n = 0

    def start(self):
        """The first agent holds the store of the rendezvous."""
        conf = f"{RENDEZVOUS},is_host={0 if self.agents else 1}"
        output = open(self.folder / f"agent{self.n}.txt", "w")
        self.n += 1
        # Without the last one, jobs of torch 2.13 hung or failed in the rendezvous when an agent
        # joined later.
        env = {**os.environ, "OMP_NUM_THREADS": "1", "LOGLEVEL": "ERROR",
               "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with output:
            self.agents.append(subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:4",
                 "--nproc-per-node", "1", "--max-restarts", "20", "--rdzv-backend", "c10d",
                 "--rdzv-endpoint", f"localhost:{self.port}", "--rdzv-id", "elastic",
                 "--rdzv-conf", conf, *map(str, self.command)],
                cwd=self.folder, env=env, stdout=output, stderr=output, start_new_session=True))

    def workers(self, agent):
        """Processes that an agent has started."""
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text()
            return [int(pid) for pid in children.split()]
        return []

    def lose(self, agents):
        """Nodes fail: their processes are gone at once."""
        pids = [agent.pid for agent in agents]
        workers = [pid for agent in agents for pid in self.workers(agent)]
        for pid in pids + workers:
            kill(pid)
        for agent in list(agents):
            agent.wait()
            self.agents.remove(agent)

    def kill_worker(self, dice):
        """The process of one node is killed; its agent lives."""
        workers = [pid for agent in self.agents for pid in self.workers(agent)]
        if workers:
            kill(dice.choice(workers))
        return bool(workers)

    def end(self):
        self.lose(self.agents)

    def have_ended(self):
        return all(agent.poll() is not None for agent in self.agents)

    def output(self):
        return "\n".join(path.read_text()[-800:] for path in self.folder.glob("agent*.txt"))


class Job:
    """A training that is killed and resumed. Subclasses have ended(), start_again(), end() and
    output()."""

    def __init__(self, folder):
        self.log = folder / "log"
        self.log.mkdir(parents=True)
        self.seen, self.relaunched = set(), 0

    def wait(self, condition):
        """The value of the condition, once it is true. If the job gives up, it is started again, as
        a cluster would do."""
        deadline = time.monotonic() + SECONDS
        while not (value := condition()):
            assert time.monotonic() < deadline and self.relaunched < 3, self.output()
            if self.ended():
                self.relaunched += 1
                self.start_again()
            time.sleep(0.05)
        return value

    def running(self, step, nodes=None):
        """Waits for a run that no earlier call returned, with so many nodes and so many steps of
        its own. None: the training is done."""
        def look():
            runs = read_runs(self.log)
            if any(run.is_done for run in runs.values()):
                return (None,)
            for name, run in runs.items():
                first = run.resumed[1] if run.resumed else 0
                if name not in self.seen and run.steps - first >= step and (
                        nodes is None or run.world == nodes):
                    self.seen.add(name)
                    return (run,)
            return None

        return self.wait(look)[0]

    def finish(self):
        """Waits for the end; the history."""
        try:
            self.wait(lambda: any(run.is_done for run in read_runs(self.log).values()))
        finally:
            self.end()
        return history(read_runs(self.log))


class ElasticJob(Job):
    """Under torchrun, on nodes that come and go. If an agent dies in the middle of a rendezvous,
    the others may give up."""

    def __init__(self, folder, script, *options):
        super().__init__(folder)
        self.agents = Agents(folder, EXAMPLES / script, *options, "--sample-log", self.log)

    def start(self, nodes):
        for _ in range(nodes):
            self.agents.start()

    def ended(self):
        return self.agents.have_ended()

    def start_again(self):
        nodes = len(self.agents.agents)
        self.agents.end()
        self.agents.port = free_port()
        self.start(nodes)

    def end(self):
        self.agents.end()

    def output(self):
        return self.agents.output()


# ---- Ray Train


class RayJob(Job):
    """Under Ray Train, on the nodes of a cluster of ray_tools.py."""

    def __init__(self, folder, address, *options):
        super().__init__(folder)
        self.printed = folder / "driver.txt"
        self.command = [sys.executable, EXAMPLES / "train_ray.py", *options, "--address", address,
                        "--storage", folder / "storage", "--sample-log", self.log]
        self.driver = None

    def start(self):
        with self.printed.open("a") as output:
            self.driver = subprocess.Popen(
                [str(word) for word in self.command], cwd=self.log.parent, stdout=output,
                stderr=output, start_new_session=True)

    def ended(self):
        return self.driver.poll() is not None

    start_again = start

    def end(self):
        """The driver ends by itself when the training is done."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.driver.wait(60)
        kill(self.driver.pid)
        self.driver.wait()

    def output(self):
        return self.printed.read_text()[-3000:]
