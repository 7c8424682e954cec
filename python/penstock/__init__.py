# SPDX-License-Identifier: Apache-2.0
"""penstock: pack a dataset once, then load the same batches from it in every run.

    import penstock
    from penstock import ops

    pack = penstock.open("train.pen")
    loader = penstock.Loader(pack, batch_size=256, shuffle=True, drop_last=True,
                             pipeline=[ops.decode(), ops.random_resized_crop(224), ops.hflip(),
                                       ops.tensor("u8")])
    for image, label in loader:
        ...
"""

from . import _core, ops
from ._clip import Clip
from ._error import (
    AccessError,
    BusyError,
    CancelledError,
    ChangedError,
    ClosedError,
    CorruptError,
    DecodeError,
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
from ._loader import BadSample, BatchInfo, Loader
from ._pack import Field, ImageInfo, Pack, Preloaded, Sample, open
from ._remote import StorageOptions
from ._writer import Writer, write

__version__: str = _core.version

__all__ = [
    "AccessError",
    "BadSample",
    "BatchInfo",
    "BusyError",
    "CancelledError",
    "ChangedError",
    "Clip",
    "ClosedError",
    "CorruptError",
    "DecodeError",
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
    "ReadWriteError",
    "Sample",
    "StorageOptions",
    "TimeoutError",
    "UnsupportedError",
    "Writer",
    "__version__",
    "open",
    "ops",
    "write",
]
