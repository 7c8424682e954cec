# SPDX-License-Identifier: Apache-2.0
"""The formats, by name, and which of them a path has."""

from __future__ import annotations

import importlib
import os
from typing import Any

from .. import _check
from .._error import InvalidError, NotFoundError, UnsupportedError
from ._reader import Choice, Reader

# Each is a module of this package. A path gets the first format that recognises it.
FORMATS = ("mds", "litdata", "huggingface", "parquet", "webdataset", "ffcv", "tfrecord")


def _module(name: str) -> Any:
    return importlib.import_module(f".{name}", __package__)


def check_local(source: str) -> None:
    if "://" in source:
        raise UnsupportedError(
            f"{source}: convert reads local files only; download them first. 'penstock pack' also "
            "reads tars, lists and folders at s3://"
        )


def find(source: str) -> str:
    """The format of a source."""
    for name in FORMATS:
        if _module(name).recognise(source):
            return name
    expected = f"expected one of {', '.join(FORMATS)}"
    if not os.path.lexists(source):
        raise NotFoundError(f"{source}: no such file or directory; {expected}")
    raise InvalidError(f"{source}: unknown format; {expected}: name it with format= or --from")


def open_source(name: str, source: str, choice: Choice) -> Reader:
    """A Reader of a dataset in this format."""
    reader: Reader = _module(_check.word("format", name, FORMATS)).open(source, choice)
    return reader
