# SPDX-License-Identifier: Apache-2.0
"""The page cache of files: how much of them it holds, eviction, loading."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pathlib
from collections.abc import Iterable

from ..errors import Absent

CHUNK = 1 << 20
DROP = pathlib.Path("/proc/sys/vm/drop_caches")
_PROT_READ, _MAP_SHARED = 1, 1


def evict(files: Iterable[str]) -> None:
    """Drop the pages of these files. Changed pages are written first, as they cannot be dropped."""
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def evict_machine() -> None:
    """Drop the page cache of the entire machine."""
    os.sync()
    try:
        DROP.write_text("3", encoding="ascii")
    except OSError as error:
        raise Absent(f"cannot drop the machine's page cache: {error}. It needs root.") from None


def load(files: Iterable[str]) -> None:
    """Read these files through the page cache once."""
    buffer = bytearray(CHUNK)
    for file in files:
        with open(file, "rb", buffering=0) as source:
            while source.readinto(buffer):
                pass


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    return libc


def _resident(libc: ctypes.CDLL, fd: int, size: int) -> int:
    """Pages of an open file in memory."""
    address = libc.mmap(None, size, _PROT_READ, _MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise Absent(f"cannot map a file: {os.strerror(ctypes.get_errno())}")
    try:
        pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        if libc.mincore(address, size, pages):
            raise Absent(f"mincore failed: {os.strerror(ctypes.get_errno())}")
        return sum(byte & 1 for byte in pages.raw)
    finally:
        libc.munmap(address, size)


def resident_percent(files: Iterable[str]) -> float:
    """Share of the pages of these files that are in memory."""
    libc, held, total = _libc(), 0, 0
    for file in files:
        with contextlib.closing(open(file, "rb", buffering=0)) as source:
            size = os.fstat(source.fileno()).st_size
            if size:
                held += _resident(libc, source.fileno(), size)
                total += -(-size // mmap.PAGESIZE)
    return 100 * held / total if total else 0.0
