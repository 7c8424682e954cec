# SPDX-License-Identifier: Apache-2.0
"""What the tests of packs in shared memory look at."""

import os
import pathlib


def names(pack_id):
    """Names that the kernel lists for a pack, of this user's: one for each that has it open."""
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="ascii", errors="replace")
    return [line for line in lines.splitlines() if f"@penstock/{os.geteuid()}/{pack_id}" in line]


def memory_kib():
    """What this process holds: all it has touched, its share of that, and what nobody else has."""
    found = {}
    text = pathlib.Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    for line in text.splitlines()[1:]:
        name, kib, _ = line.split()
        found[name.rstrip(":")] = int(kib)
    private = sum(found[name] for name in found if name.startswith("Private_"))
    return {"rss": found["Rss"], "pss": found["Pss"], "private": private}


def memory_files():
    """Memory files of ours that any process of this user has open: pid and inode."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:  # it may end meanwhile
            for link in pathlib.Path("/proc", pid, "fd").iterdir():
                if os.readlink(link).startswith("/memfd:penstock"):
                    found.add((pid, link.stat().st_ino))
        except OSError:
            continue
    return found
