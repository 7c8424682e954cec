# SPDX-License-Identifier: Apache-2.0
"""A directory that appears under its name when all its files are complete."""

from __future__ import annotations

import os
import shutil
from types import TracebackType
from typing import BinaryIO

from .._error import Error, ExistsError, ReadWriteError


class Folder:
    """Use it in a with statement, which publishes the directory at its end. After an exception,
    the files are deleted."""

    def __init__(self, path: str) -> None:
        self.path, self._partial = path, f"{path}.partial"
        self.files = self.n_bytes = 0

    def __enter__(self) -> Folder:
        if os.path.lexists(self.path):
            raise ExistsError(
                f"{self.path} exists already and is not changed; extract to another directory"
            )
        try:
            os.mkdir(self._partial)
        except FileExistsError:
            raise ExistsError(
                f"{self._partial} exists: another process is writing it, or was killed; delete it, "
                "or extract to another directory"
            ) from None
        except OSError as error:
            raise self._failed("cannot create this directory", error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if value is None:
            try:
                os.rename(self._partial, self.path)
                return
            except OSError as error:
                value = error
        shutil.rmtree(self._partial, ignore_errors=True)
        if isinstance(value, OSError) and not isinstance(value, Error):
            raise self._failed("cannot write", value) from None

    def _failed(self, what: str, error: OSError) -> Error:
        return ReadWriteError(
            f"{self.path}: {what}: {error.strerror or error}", os_errno=error.errno or 0
        )

    def create(self, name: str) -> BinaryIO:
        return open(os.path.join(self._partial, name), "xb")

    def finish(self, file: BinaryIO) -> None:
        """Close a file, and count it."""
        file.flush()
        os.fsync(file.fileno())
        self.files += 1
        self.n_bytes += file.tell()
        file.close()
