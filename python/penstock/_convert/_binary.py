# SPDX-License-Identifier: Apache-2.0
"""Checked reads of binary files. Sizes and positions in a file can be wrong or hostile."""

from __future__ import annotations

import array
import contextlib
import json
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from .._error import (
    AccessError,
    Error,
    InvalidError,
    LimitError,
    NotFoundError,
    ReadWriteError,
    UnsupportedError,
)

MAX_VALUE = 1 << 30  # bytes of one value: an image, a text, an array
MAX_INDEX = 1 << 28  # bytes of an index.json
_PIECE = 1 << 20


def os_error(path: str, error: OSError) -> Exception:
    """The exception of penstock for one of the system."""
    kinds = {FileNotFoundError: NotFoundError, PermissionError: AccessError}
    kind = kinds.get(type(error), ReadWriteError)
    return kind(f"{path}: cannot read: {error.strerror}", os_errno=error.errno or 0)


def invalid(path: str, at: int, why: str) -> InvalidError:
    return InvalidError(f"{path}: byte {at}: {why}")


class File:
    """A file of which only ranges that exist are read."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self.size = file.seek(0, os.SEEK_END)

    def read(self, at: int, n: int, what: str) -> bytes:
        if n > MAX_VALUE:
            raise LimitError(f"{self.path}: byte {at}: {what} has {n} bytes, at most {MAX_VALUE}")
        if at < 0 or n < 0 or at + n > self.size:
            raise invalid(
                self.path, at, f"expected {what} of {n} bytes, but the file has {self.size} bytes"
            )
        try:
            self._file.seek(at)
            data = self._file.read(n)
        except OSError as error:
            raise os_error(self.path, error) from None
        if len(data) != n:
            raise invalid(self.path, at, f"expected {what} of {n} bytes, found {len(data)}")
        return data

    def numbers(self, at: int, n: int, what: str) -> array.array[int]:
        """`n` little-endian numbers of 32 bits."""
        found = array.array("I", self.read(at, 4 * n, what))
        if sys.byteorder == "big":
            found.byteswap()
        return found


def refuse_pipe(path: str) -> None:
    """To open one would block."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise InvalidError(f"{path}: expected a file, found a pipe")


@contextlib.contextmanager
def opened(path: str) -> Iterator[File]:
    try:
        refuse_pipe(path)
        file = open(path, "rb")
    except OSError as error:
        raise os_error(path, error) from None
    with file:
        yield File(path, file)


def _zstd(path: str) -> BinaryIO:
    """Python has zstd since 3.14; before, the package zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return zstd.open(path)  # type: ignore[no-any-return,unused-ignore]
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UnsupportedError(
            f"{path}: zstd needs the package zstandard, or Python 3.14: pip install zstandard"
        ) from None
    return zstandard.open(path, "rb")  # type: ignore[no-any-return,unused-ignore]


def decompressing(path: str, algorithm: str) -> BinaryIO:
    """A stream of the decompressed bytes. `algorithm` is gz, bz2 or zstd, perhaps with :LEVEL."""
    name = algorithm.partition(":")[0]
    if name == "gz":
        import gzip

        return gzip.open(path)  # type: ignore[return-value]
    if name == "bz2":
        import bz2

        return bz2.open(path)  # type: ignore[return-value]
    if name == "zstd":
        return _zstd(path)
    raise UnsupportedError(
        f"{path}: compression {algorithm[:40]!r} is not supported; expected gz, bz2 or zstd"
    )


def _copy(path: str, source: BinaryIO, to: BinaryIO, limit: int) -> None:
    done = 0
    while piece := source.read(_PIECE):
        done += len(piece)
        if done > limit:
            raise LimitError(f"{path}: expected {limit} bytes after decompression, found more")
        to.write(piece)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """Errors of the system and of decompression become exceptions of penstock."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        if error.errno is not None:
            raise os_error(path, error) from None
        raise invalid(path, 0, f"cannot decompress: {error}") from None
    except (EOFError, ValueError, zlib.error) as error:
        raise invalid(path, 0, f"cannot decompress: {error}") from None
    except Exception as error:  # packages of zstd have exceptions of their own
        if "zst" not in type(error).__module__:
            raise
        raise invalid(path, 0, f"cannot decompress: {error}") from None


@contextlib.contextmanager
def decompressed(path: str, algorithm: str, limit: int) -> Iterator[File]:
    """The file, decompressed into a temporary file of at most `limit` bytes."""
    with tempfile.TemporaryFile() as to:
        with _translated(path):
            refuse_pipe(path)
            with decompressing(path, algorithm) as source:
                _copy(path, source, to, limit)
        yield File(path, to)


@contextlib.contextmanager
def streaming(path: str) -> Iterator[BinaryIO]:
    """A stream of the file, decompressed if it is a gzip file."""
    with _translated(path):
        refuse_pipe(path)
        with open(path, "rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            with decompressing(path, "gz") if is_gzip else contextlib.nullcontext(file) as stream:
                yield stream


def read_json(path: str) -> Any:
    """A small JSON file, such as index.json."""
    with opened(path) as file:
        if file.size > MAX_INDEX:
            raise LimitError(f"{path}: it has {file.size} bytes, at most {MAX_INDEX} are allowed")
        return parse_json(path, file.read(0, file.size, "a JSON document"))


def parse_json(path: str, data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{path}: expected JSON: {error}") from None


def inside(folder: str, name: object, index: str) -> str:
    """The path of a file that an index names: below the folder of the index."""
    parts = name.split("/") if isinstance(name, str) else [""]
    if "\0" in str(name) or any(part in ("", ".", "..") for part in parts):
        raise InvalidError(f"{index}: expected a file in its folder, found {name!r:.100}")
    return os.path.join(folder, *parts)


def count(index: str, what: str, value: object, high: int = 2**32 - 1) -> int:
    """A number of samples or bytes that an index names."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise InvalidError(f"{index}: {what}: expected 0 to {high}, found {value!r:.60}")
    return value

