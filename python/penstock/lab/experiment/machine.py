# SPDX-License-Identifier: Apache-2.0
"""What this machine is, and whether the measurement was alone on it."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import time
from typing import Any

# Load average and cores in use by others from which a measurement is not alone.
BUSY_LOAD, BUSY_CORES = 0.5, 0.25


def date() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def _cpu() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit() -> str:
    """The commit of the checkout that this package was built from; "" if it is installed."""
    for folder in pathlib.Path(__file__).resolve().parents:
        if (folder / "include" / "penstock").is_dir() and (folder / ".git").exists():
            done = subprocess.run(
                ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],
                check=False, capture_output=True, text=True,
            )
            return done.stdout.strip()
    return ""


def describe() -> dict[str, Any]:
    """The machine, for the first line of a report."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9, 1),
        "kernel": platform.release(),
        "load_before": load(),
    }


def versions() -> dict[str, str]:
    """Software, for the first line of a report."""
    from ... import __version__

    return {"penstock": __version__, "commit": commit(), "python": platform.python_version()}


def busy_seconds() -> float:
    """Processor time of all processes since the machine started, and of what the host of a virtual
    machine gave to others meanwhile."""
    try:
        first = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    except (OSError, IndexError):
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, stolen = map(int, first[1:9])
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def not_alone(load_before: float, other_cores: float) -> str:
    """Why the figures of a run may be disturbed; "" if it was alone."""
    reasons = []
    if load_before > BUSY_LOAD:
        reasons.append(f"the load average was {load_before:.2f} before the run")
    if other_cores > BUSY_CORES:
        reasons.append(f"other processes, or the host of this virtual machine, used "
                       f"{other_cores:.2f} cores during the run")
    return " and ".join(reasons)
