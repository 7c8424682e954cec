# SPDX-License-Identifier: Apache-2.0
"""A disk that has to seek: seek_disk.c, a FUSE file system, shows the folder."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence

from ..errors import Absent
from ..home import home
from . import undo
from .shape import Check, PathLike, Place, Shape, common_folder

SOURCE = pathlib.Path(__file__).with_name("seek_disk.c")
COMPILE_SECONDS = 60
PROBE_SECONDS, PROBE_SEEKS = 1.0, (20, 400)  # least and most
READERS, BLOCK = 4, 4096
HOW = "a FUSE file system that waits; reads at random offsets"
INSTALL = "Simulated seeks need FUSE: apt-get install gcc pkg-config libfuse3-dev fuse3"


def _flags() -> list[str]:
    try:
        found = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, text=True,
            capture_output=True, timeout=undo.SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        raise Absent(f"libfuse3 was not found. {INSTALL}") from None
    return found.stdout.split()


def build() -> pathlib.Path:
    """The program; compiled when its source has changed."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Absent(f"/dev/fuse cannot be opened. {INSTALL}")
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    program = home() / f"seek_disk-{digest}"
    if program.exists():
        return program
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if not compiler:
        raise Absent(f"no C compiler was found. {INSTALL}")
    program.parent.mkdir(parents=True, exist_ok=True)
    part = program.with_name(f"{program.name}-{os.getpid()}")
    done = subprocess.run(
        [compiler, "-std=gnu17", "-O2", "-o", str(part), str(SOURCE), *_flags()],
        check=False, capture_output=True, text=True, timeout=COMPILE_SECONDS,
    )
    if done.returncode:
        raise Absent(f"{SOURCE.name} does not compile: {done.stderr.strip()[-400:]}. {INSTALL}")
    part.replace(program)
    return program


class SeekPlace(Place):
    def __init__(self, origin: pathlib.Path, folder: pathlib.Path) -> None:
        super().__init__(origin)
        self.folder = folder

    def counts(self) -> dict[str, int]:
        """Opens, reads, seeks and bytes so far."""
        words = (self.folder / ".counts").read_text(encoding="ascii").split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2])}


@contextlib.contextmanager
def mounted(source: pathlib.Path, milliseconds: float) -> Iterator[SeekPlace]:
    """The folder as it is on a disk with seeks of so many ms."""
    program = build()
    undo.remove_leftover_folders()
    with undo.on_sigterm(), undo.temporary_folder() as folder:
        process = subprocess.Popen(
            [str(program), str(source), str(round(milliseconds * 1000)), str(folder), "-f"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        try:
            undo.until(lambda: undo.is_mounted(folder) or process.poll() is not None)
            if not undo.is_mounted(folder):
                process.kill()
                said = process.communicate()[1].strip()
                raise Absent(f"the simulated disk did not start: {said}. {INSTALL}")
            yield SeekPlace(source, folder)
        finally:
            _end(process, folder)


def _end(process: subprocess.Popen[str], folder: pathlib.Path) -> None:
    """It unmounts when it ends; a folder that is still in use is detached first."""
    if undo.is_mounted(folder):
        undo.unmount(folder)
    process.terminate()
    try:
        process.communicate(timeout=undo.SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def read_apart(folder: pathlib.Path, count: int) -> list[float]:
    """Milliseconds of reads at random offsets of the file `probe`."""
    times = []
    fd = os.open(folder / "probe", os.O_RDONLY)
    try:
        blocks = os.fstat(fd).st_size // BLOCK
        for _ in range(count):
            offset = BLOCK * 2 * random.randrange(1, blocks // 2)
            began = time.perf_counter()
            os.pread(fd, BLOCK, offset)
            times.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(fd)
    return times


def shared_ms(folder: pathlib.Path, count: int) -> float:
    """Milliseconds of a seek while several readers wait for the arm."""
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        list(pool.map(read_apart, [folder] * READERS, [count // READERS] * READERS))
    seeks = READERS * (count // READERS + 1)  # an open is one too
    return (time.perf_counter() - began) * 1000 / seeks


@dataclasses.dataclass(frozen=True)
class Seeks(Shape):
    """Each open and each read that is not contiguous waits; nothing is kept in the page cache."""

    milliseconds: float

    @property
    def text(self) -> str:  # type: ignore[override]
        return f"seeks={self.milliseconds:g}ms"

    @contextlib.contextmanager
    def apply(self, paths: Sequence[PathLike], measure: bool = True) -> Iterator[SeekPlace]:
        checks = self.check() if measure else []
        with mounted(common_folder(paths), self.milliseconds) as place:
            place.checks += checks
            yield place

    def check(self) -> list[Check]:
        """With a folder of its own, so that the counts of the other stay 0."""
        count = round(PROBE_SECONDS * 1000 / self.milliseconds)
        count = min(max(count, PROBE_SEEKS[0]), PROBE_SEEKS[1])
        with undo.temporary_folder() as source:
            (source / "probe").write_bytes(bytes(4 << 20))
            with mounted(source, self.milliseconds) as place:
                alone = statistics.median(read_apart(place.folder, count))
                shared = shared_ms(place.folder, count)
        asked, unit = self.milliseconds, "ms"
        return [
            Check(self.text, "seek, 1 reader", asked, alone, unit, f"{HOW}; median"),
            Check(self.text, f"seek, {READERS} readers", asked, shared, unit, f"{HOW}; mean"),
        ]
