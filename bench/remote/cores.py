# SPDX-License-Identifier: Apache-2.0
"""Threads by their names: on which core they run, and what processor time they took."""

import contextlib
import os
import pathlib
import time

TICK = os.sysconf("SC_CLK_TCK")


def threads_of(pid):
    """{thread id: name}"""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found[int(task.name)] = (task / "comm").read_text(encoding="utf-8").strip()
    return found


def pin_process(pid, core):
    """All threads there are; those that they start later inherit it."""
    for thread in threads_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, {core})


def pin_named(pid, name, core, seconds=5.0):
    """Waits for threads of this name and pins them; how many there were."""
    deadline = time.monotonic() + seconds
    while True:
        named = [thread for thread, found in threads_of(pid).items() if found == name]
        for thread in named:
            os.sched_setaffinity(thread, {core})
        if named or time.monotonic() > deadline:
            return len(named)
        time.sleep(0.001)


def seconds_of(pid):
    """{name of threads: their processor seconds}; those that ended are not among them."""
    found = {}
    for thread, name in threads_of(pid).items():
        try:
            text = pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="utf-8")
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        found[name] = found.get(name, 0.0) + sum(map(int, fields[11:13])) / TICK
    return found


def process_seconds(pid):
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return sum(map(int, text.rpartition(")")[2].split()[11:13])) / TICK
    return 0.0


def since(before, after):
    """What was used in between, by name."""
    used = {name: round(after[name] - before.get(name, 0.0), 3) for name in after}
    return {name: seconds for name, seconds in sorted(used.items()) if seconds > 0}
