# SPDX-License-Identifier: Apache-2.0
"""What Linux shows of a process tree during a turn: reads, waits, energy; and what limits it."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any

from .worker.processes import tree

EVERY = 0.1  # seconds; more often would take time from what is measured
RAPL = pathlib.Path("/sys/class/powercap")
# A loader is limited by the processor if it uses this share of the cores that it may use, and by
# the disk if one of its threads waits for it in this share of the time.
CPU_SHARE, DISK_SHARE, CONSUMER_SHARE = 0.8, 0.3, 0.05


# Where the kernel waits for a file system of FUSE, such as the simulated disk with seeks. Signals
# may interrupt it, so its state is not D.
FUSE_WAIT = "request_wait_answer"


def _state(task: pathlib.Path) -> str:
    text = (task / "stat").read_text(encoding="utf-8", errors="replace")
    state = text.rpartition(")")[2].split()[0]
    if state != "S":
        return state
    try:
        waits_in = (task / "wchan").read_text(encoding="ascii")
    except OSError:  # only root may see it
        return state
    return "D" if waits_in == FUSE_WAIT else state


def states_of(pid: int) -> list[str]:
    """The states of the threads of a process: R has or needs a core, D waits for a disk."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            found.append(_state(task))
        except OSError:
            continue
    return found


def read_bytes(pid: int) -> int:
    """Bytes that a process fetched from a disk; 0 if it is gone or belongs to somebody else."""
    try:
        text = pathlib.Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    rows = dict(line.split(": ") for line in text.splitlines())
    return int(rows["read_bytes"])


def energy_joules() -> float | None:
    """Of all processor packages since some time in the past; None if it is not readable."""
    total = 0.0
    zones = sorted(RAPL.glob("intel-rapl:?/energy_uj"))
    for zone in zones:
        try:
            total += int(zone.read_text(encoding="ascii")) / 1e6
        except (OSError, ValueError):
            return None
    return total if zones else None


class Watch:
    """Observes a process tree while the block runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.samples = self.in_disk = self.running = 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        pids = list(tree(self.pid))
        while not self.end.wait(EVERY):
            self.samples += 1
            states = [state for pid in pids for state in states_of(pid)]
            self.in_disk += "D" in states
            self.running += states.count("R")

    def _read(self) -> dict[int, int]:
        return {pid: read_bytes(pid) for pid in tree(self.pid)}

    def __enter__(self) -> Watch:
        self._before, self._joules = self._read(), energy_joules()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join()
        after, joules = self._read(), energy_joules()
        self.read = sum(count - self._before.get(pid, 0) for pid, count in after.items())
        spent = None if joules is None or self._joules is None else joules - self._joules
        self.joules = spent if spent is not None and spent >= 0 else None  # the counter wraps

    @property
    def disk_share(self) -> float:
        """The share of the time in which a thread waited for the disk."""
        return self.in_disk / self.samples if self.samples else 0.0

    @property
    def cores(self) -> float:
        """Threads that had a core or needed one, on average."""
        return self.running / self.samples if self.samples else 0.0


def _is_consumer(turn: dict[str, Any]) -> bool:
    """Whether the training step takes the time. Loaders that start processes in each epoch are late
    with the first batches, so the median wait counts if the steps take most of the time."""
    median = turn["waits"][0] * 1000 / turn["consumer_ms"]
    return bool(turn["idle"] < CONSUMER_SHARE or (median < CONSUMER_SHARE and turn["idle"] < 0.5))


def limited_by(turn: dict[str, Any], threads: int, cores: float, disk_share: float) -> str:
    """What /proc shows to be the bottleneck of a loader that does not name it itself.

    cores  that its threads had or needed: on a busy machine, more than the processor time shows
    """
    if turn.get("consumer_ms") and _is_consumer(turn):
        return "consumer"
    usable = min(threads, len(os.sched_getaffinity(0)))
    cores = max(cores, turn["cpu"] / max(turn["seconds"], 1e-9))
    if cores >= CPU_SHARE * usable:
        return "CPU"
    if disk_share >= DISK_SHARE:
        return "disk"
    return "one core" if cores >= CPU_SHARE else "waiting"
