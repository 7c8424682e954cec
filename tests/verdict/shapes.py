# SPDX-License-Identifier: Apache-2.0
"""Makes one thing slow: each function is a context manager for (words to put before a command, the
folder that the command reads). Absent says why this machine cannot do it."""

import contextlib
import os
import pathlib
import subprocess

BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")
JOIN = 'echo $$ >"$1" && shift && exec "$@"'
LINK = ('ip link set lo up && tc qdisc add dev lo root tbf rate "$1"mbit burst 256kb latency 50ms '
        '&& shift && exec "$@"')


class Absent(Exception):
    pass


@contextlib.contextmanager
def nothing(folder):
    yield [], folder


def device_of(folder):
    """The number of the disk that holds it, as limits are for entire disks."""
    number = os.stat(folder).st_dev
    place = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not place.exists():
        raise Absent(f"{folder} is not on a disk")
    return ((place.parent if (place / "partition").exists() else place) / "dev").read_text().strip()


@contextlib.contextmanager
def bandwidth(folder, mb_per_second):
    """The disk of the folder, with this bandwidth."""
    group = BLKIO / f"penstock-{os.getpid()}"
    device = device_of(folder)
    try:
        group.mkdir()
    except OSError as error:
        raise Absent(f"no cgroup v1 for block devices: {error}") from None
    try:
        limit = group / "blkio.throttle.read_bps_device"
        limit.write_text(f"{device} {round(mb_per_second * 1e6)}")
        yield ["sh", "-c", JOIN, "sh", str(group / "cgroup.procs")], folder
    finally:
        group.rmdir()


@contextlib.contextmanager
def seeks(folder, milliseconds):
    """A disk that seeks: a FUSE file system that waits."""
    from penstock.lab import shapes
    from penstock.lab.errors import Absent as LabAbsent

    try:
        with shapes.Seeks(milliseconds).apply([folder], measure=False) as place:
            yield [], place.path(folder)
    except LabAbsent as error:
        raise Absent(str(error)) from None


@contextlib.contextmanager
def link(folder, mbit_per_second):
    """A network namespace whose loopback device has this bandwidth."""
    words = ["unshare", "-n", "sh", "-c", LINK, "sh", str(mbit_per_second)]
    probe = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=20,
                           check=False)
    if probe.returncode:
        raise Absent(f"no network namespace with a limit: {probe.stderr.strip()}")
    yield words, folder
