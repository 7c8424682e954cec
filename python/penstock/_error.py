# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status code of the library."""

from __future__ import annotations

import builtins
import errno


class Error(RuntimeError):
    """Base class of all exceptions of penstock.

    status  the status code of the C library, a negative number
    sample  the number of the sample, or of the file in decode_batch(), that failed; or None
    where   the component that failed: "pack/block", "codec/jpeg"
    """

    status: int = 0
    sample: int | None
    where: str

    def __init__(
        self,
        message: str = "",
        *,
        sample: int | None = None,
        where: str = "python",
        os_errno: int = 0,
    ) -> None:
        super().__init__(message)
        self.args = (message,)
        self.sample = sample
        self.where = where
        if isinstance(self, OSError):
            _set_errno(self, os_errno or self._errno, message)

    _errno: int | None = None

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        os_errno = self.errno if isinstance(self, OSError) and self.errno else 0
        return _again, (type(self), self.args[0], self.sample, self.where, os_errno)


def _set_errno(error: OSError, number: int | None, message: str) -> None:
    error.errno = number
    error.strerror = message


def _again(
    kind: type[Error], message: str, sample: int | None, where: str, os_errno: int
) -> Error:
    return kind(message, sample=sample, where=where, os_errno=os_errno)


class InvalidError(Error, ValueError):
    """An invalid argument or setting."""

    status = -1


class NoMemoryError(Error, MemoryError):
    """Out of memory."""

    status = -2


class NotFoundError(Error, FileNotFoundError, KeyError):
    """No such file, sample, key or field."""

    status = -3
    _errno = errno.ENOENT


class AccessError(Error, PermissionError):
    """Permission denied."""

    status = -4
    _errno = errno.EACCES


class ReadWriteError(Error, OSError):
    """A read or a write failed."""

    status = -5
    _errno = errno.EIO


class TimeoutError(Error, builtins.TimeoutError):
    """An operation exceeded its time limit."""

    status = -6
    _errno = errno.ETIMEDOUT


class FormatError(Error):
    """Not a pack, or a pack of an unsupported version."""

    status = -7


class CorruptError(Error):
    """Damaged data: a checksum or the structure does not match."""

    status = -8


class DecodeError(Error):
    """An image, a text or JSON could not be decoded."""

    status = -9


class UnsupportedError(Error):
    """The pack, file or operation needs a feature that is not supported."""

    status = -10


class ExistsError(Error, FileExistsError):
    """The file, key or pack already exists."""

    status = -11
    _errno = errno.EEXIST


class BusyError(Error):
    """In use by another process."""

    status = -12


class LimitError(Error):
    """A limit is exceeded: the loader's memory, or a maximum size."""

    status = -13


class CancelledError(Error):
    """Cancelled by the caller."""

    status = -14


class ClosedError(Error):
    """The object is closed, or belongs to the parent process."""

    status = -15


class ChangedError(Error):
    """A remote object was overwritten while in use."""

    status = -16


class DecodeTimeoutError(Error, builtins.TimeoutError):
    """A video decoder exceeded its time limit. `on_bad="substitute"` does not apply to it."""

    status = -17
    _errno = errno.ETIMEDOUT


KINDS: dict[int, type[Error]] = {kind.status: kind for kind in Error.__subclasses__()}


def make(status: int, os_errno: int, sample: int, where: str, message: str) -> Error:
    """Make the exception for an error of the library. The extension calls it."""
    error = KINDS.get(status, Error)(
        message, sample=None if sample < 0 else sample, where=where, os_errno=os_errno
    )
    if error.status != status:
        error.status = status
    return error
