# SPDX-License-Identifier: Apache-2.0
"""Processor time and memory of processes, as /proc has them."""

from __future__ import annotations

import os
import pathlib

TICK = os.sysconf("SC_CLK_TCK")


def stat_of(pid: int | str) -> tuple[int, float] | None:
    """(parent, processor seconds with those of children that ended), or None: it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK


def tree(pid: int) -> dict[int, float]:
    """{pid: processor seconds} of a process and all below it."""
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit()
             if (stat := stat_of(name))}
    inside, grew = {pid} & stats.keys(), True
    while grew:
        more = {p for p, (parent, _) in stats.items() if parent in inside} - inside
        inside, grew = inside | more, bool(more)
    return {p: stats[p][1] for p in inside}


def memory_of(pid: int) -> int:
    """Bytes of a process's own: anonymous and shared memory by its share of them, no file pages."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    rows = dict(line.split(":", 1) for line in text.splitlines()[1:] if ":" in line)
    return sum(int(rows[key].split()[0]) for key in ("Pss_Anon", "Pss_Shmem") if key in rows) * 1024
