# SPDX-License-Identifier: Apache-2.0
"""Where the files of a dataset are: a folder, or a prefix of an object store. Paths are complete:
below the folder or the prefix."""

from __future__ import annotations

import fnmatch
import glob
import os
from typing import Any, Protocol

from .. import _remote
from .._core import remote_list, remote_read
from .._error import LimitError, NotFoundError, UnsupportedError

PARQUET_BYTES = 4 << 30  # of an object, which is read into memory


class Place(Protocol):
    path: str

    def read(self, path: str, most: int) -> bytes:
        """A small file, of at most so many bytes."""

    def parquet(self, path: str) -> Any:
        """What pyarrow.parquet.ParquetFile takes."""

    def names(self, pattern: str) -> list[str]:
        """Sorted paths of files. The pattern has * for a part of a path."""

    def size(self, path: str) -> int: ...


class Folder:
    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, path: str, most: int) -> bytes:
        with open(path, "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise LimitError(f"{path}: expected at most {most:,} bytes, found more")
        return data

    def parquet(self, path: str) -> Any:
        return path

    def names(self, pattern: str) -> list[str]:
        return sorted(glob.glob(os.path.join(glob.escape(self.path), pattern)))

    def size(self, path: str) -> int:
        return os.stat(path).st_size


class Prefix:
    """Of each folder that is needed there is one list, and each object is read once."""

    def __init__(self, path: str, options: _remote.Options) -> None:
        self.path = path
        self._options = options
        self._sizes: dict[str, dict[str, int]] = {}  # by the first part of the path

    def _name(self, path: str) -> str:
        return path[len(self.path) + 1:]

    def _listed(self, name: str) -> dict[str, int]:
        top = name.split("/", 1)[0]
        if top not in self._sizes:
            found = remote_list(f"{self.path}/{top}", self._options)
            self._sizes[top] = {f"{top}/{below}": size for below, size in found}
        return self._sizes[top]

    def read(self, path: str, most: int) -> bytes:
        return remote_read(self.path, self._name(path), most, self._options)

    def parquet(self, path: str) -> Any:
        import pyarrow

        return pyarrow.BufferReader(self.read(path, PARQUET_BYTES))

    def names(self, pattern: str) -> list[str]:
        depth = pattern.count("/")
        return sorted(f"{self.path}/{name}" for name in self._listed(pattern)
                      if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)
                      and not any(part.startswith(".") for part in name.split("/")))

    def size(self, path: str) -> int:
        name = self._name(path)
        if name not in self._listed(name):
            raise NotFoundError(f"{path}: no such object")
        return self._listed(name)[name]


def open_place(path: str, storage_options: _remote.StorageOptions | None) -> Place:
    options, _ = _remote.check(path, storage_options)
    if options is None:
        return Folder(path)
    if not path.startswith("s3://"):
        raise UnsupportedError(
            f"{path}: expected a folder or an s3:// URL: objects have to be listed, which web "
            "servers do not offer"
        )
    return Prefix(path.rstrip("/"), options)
