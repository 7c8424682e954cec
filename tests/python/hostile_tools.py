# SPDX-License-Identifier: Apache-2.0
"""What somebody else may have put into a directory, and a tree beside it that must not change."""

import concurrent.futures
import os
import pathlib
import shutil
import stat
import subprocess
import time

import cli_tools
import pytest
from conftest import BUILD, is_sanitized

DEADLINE = 20  # seconds; a run takes some 20 ms, and a hang never ends
THREADS = 4
NOBODY = 65534


def place():
    """A file system in memory that allows devices, or None: where temporary files usually are."""
    shm = "/dev/shm"
    fits = os.access(shm, os.W_OK | os.X_OK) and not os.statvfs(shm).f_flag & os.ST_NODEV
    return shm if fits else None


PLACE = place()


class Canary:
    """Files and directories that links lead to. Names, contents, modes and times must stay."""

    def __init__(self, root):
        self.root = root
        (root / "dir" / "deep").mkdir(parents=True)
        (root / "file").write_bytes(b"precious\n")
        (root / "dir" / "plan").write_bytes(b"precious\n")
        (root / "dir" / "shard.part").write_bytes(b"precious\n")
        (root / "dir" / "deep" / "file").write_bytes(b"precious\n")
        self.before = snapshot(root)

    def changes(self):
        return sorted(set(snapshot(self.root)) ^ set(self.before))


def snapshot(root):
    found = []
    for folder, folders, files in os.walk(root):
        for path in [folder, *(os.path.join(folder, n) for n in folders + files)]:
            st = os.lstat(path)
            data = pathlib.Path(path).read_bytes() if stat.S_ISREG(st.st_mode) else b""
            found.append((path, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns, data))
    return found


def plant(kind, at, canary):
    """Puts something in the place of `at`, which goes if it is there."""
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)
    at.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](at, canary.root)


def plant_directory(at, _):
    at.mkdir()
    (at / "inside").write_bytes(b"somebody's\n")


def plant_read_only(at, _):
    at.write_bytes(b"somebody's\n")
    at.chmod(0o400)


KINDS = {
    "link to a file": lambda at, out: at.symlink_to(out / "file"),
    "link to a directory": lambda at, out: at.symlink_to(out / "dir"),
    "dangling link": lambda at, out: at.symlink_to(out / "new"),
    "hard link": lambda at, out: os.link(out / "file", at),
    "link to itself": lambda at, out: at.symlink_to(at.name),
    "FIFO": lambda at, out: os.mkfifo(at),
    "directory": plant_directory,
    "socket": lambda at, out: os.mknod(at, 0o666 | stat.S_IFSOCK),
    "empty file": lambda at, out: at.write_bytes(b""),
    "read-only file": plant_read_only,
}
if os.geteuid() == 0:
    KINDS["device"] = lambda at, out: os.mknod(at, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def program(*args, env=None, as_nobody=False):
    """Runs the program. What is wrong with how it ended, or None; and its result."""
    command = [cli_tools.PENSTOCK, *(os.fspath(a) for a in args)]
    if as_nobody:
        user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        command = ["setpriv", *user, *command]
    try:
        done = subprocess.run(
            command, env=env, timeout=DEADLINE, capture_output=True, stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {DEADLINE} s", None
    result = cli_tools.Result(done)
    if result.code not in (0, 1):
        return f"exit code {result.code}: {result.err}", result
    if result.code == 1 and not result.err.startswith("penstock: "):
        return f"no message: {result.err!r}", result
    return None, result


# Cases are divided by numbers that do not divide the number of kinds: all kinds and places stay in
# every part. With a sanitizer each start of the program takes ten times as long.
STEP = 4 if is_sanitized(BUILD) else 3
in_parts = pytest.mark.parametrize(
    "part", [0] if is_sanitized(BUILD) else [0, *(pytest.param(i, marks=pytest.mark.slow)
                                                  for i in range(1, STEP))])


def sweep(cases, part, one):
    """Runs `one` for every case of a part, some at once. It returns what is wrong, or None."""
    cases = cases[part::STEP]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        wrong = [(c, w) for c, w in zip(cases, pool.map(one, cases), strict=True) if w]
    print(f"{len(cases)} cases, {len(wrong)} complaints, {time.monotonic() - start:.1f} s")
    assert not wrong, "\n".join(f"{case}: {w}" for case, w in wrong)
