# SPDX-License-Identifier: Apache-2.0
"""The public names of the package."""

from . import _core, ops
from ._buckets import aspect_buckets
from ._clip import Clip
from ._convert._entry import convert
from ._dataset import Dataset
from ._decode import decode, decode_batch
from ._error import (
    AccessError,
    BusyError,
    CancelledError,
    ChangedError,
    ClosedError,
    CorruptError,
    DecodeError,
    DecodeTimeoutError,
    Error,
    ExistsError,
    FormatError,
    InvalidError,
    LimitError,
    NoMemoryError,
    NotFoundError,
    ReadWriteError,
    TimeoutError,
    UnsupportedError,
)
from ._list import BatchList
from ._loader import BadSample, BatchInfo, Loader
from ._mix import mix
from ._pack import Field, ImageInfo, Pack, Preloaded, Sample, open
from ._ragged import Ragged
from ._remote import StorageOptions
from ._spans import span
from ._stages import stages
from ._stats import merge_stats
from ._trace import trace
from ._weights import balanced_weights
from ._writer import Writer, finalise, write

__version__: str = _core.version

__all__ = [
    "AccessError",
    "BadSample",
    "BatchInfo",
    "BatchList",
    "BusyError",
    "CancelledError",
    "ChangedError",
    "Clip",
    "ClosedError",
    "CorruptError",
    "Dataset",
    "DecodeError",
    "DecodeTimeoutError",
    "Error",
    "ExistsError",
    "Field",
    "FormatError",
    "ImageInfo",
    "InvalidError",
    "LimitError",
    "Loader",
    "NoMemoryError",
    "NotFoundError",
    "Pack",
    "Preloaded",
    "Ragged",
    "ReadWriteError",
    "Sample",
    "StorageOptions",
    "TimeoutError",
    "UnsupportedError",
    "Writer",
    "__version__",
    "aspect_buckets",
    "balanced_weights",
    "convert",
    "decode",
    "decode_batch",
    "finalise",
    "merge_stats",
    "mix",
    "open",
    "ops",
    "span",
    "stages",
    "trace",
    "write",
]
