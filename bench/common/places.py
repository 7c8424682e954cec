# SPDX-License-Identifier: Apache-2.0
"""Where things are, and what this machine is."""

import os
import pathlib
import platform
import subprocess
import time

BENCH = pathlib.Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build").resolve()
WORK = ROOT / "build" / "bench"
PACKS = WORK / "packs"
PEERS = ROOT / "build" / "peers"
# What workers import in the environments of other loaders, where penstock is not installed.
WORKER = ROOT / "python" / "penstock" / "lab" / "loaders" / "worker"
VENV_PYTHON = ROOT / "build" / "venv" / "bin" / "python"


def default_photos():
    given = os.environ.get("PENSTOCK_PHOTOS")
    return pathlib.Path(given) if given else ROOT.parent / "shared" / "data" / "photos"


def photo_files(folder, limit=None):
    """Photographs in FOLDER/CLASS/NAME, always in one order: the number of one is its id."""
    files = sorted(file for file in folder.glob("*/*") if file.is_file())
    if limit and limit < len(files):
        files = files[:: len(files) // limit][:limit]
    return files


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], check=False,
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def machine():
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "memory_gb": round(pages / 1e9, 1),
            "kernel": platform.release(), "python": platform.python_version(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "load_before": round(os.getloadavg()[0], 2), "commit": commit()}
