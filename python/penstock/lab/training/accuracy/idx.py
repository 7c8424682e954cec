# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST in its IDX files, as Debian's package dataset-fashion-mnist has them."""

from __future__ import annotations

import gzip
import pathlib
import struct
import zlib
from typing import Any

from .... import Writer
from ...errors import LabError
from .encodings import options

FOLDER = "/usr/share/datasets/fashion-mnist"
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
           "Bag", "Ankle boot")
SPLITS = {"train": "train", "test": "t10k"}
_UNSIGNED_BYTES = 0x08


def read_idx(path: pathlib.Path, dimensions: int) -> Any:
    """The array of an IDX file of unsigned bytes, compressed with gzip."""
    import numpy

    try:
        with gzip.open(path) as file:
            data = file.read()
    except FileNotFoundError:
        raise LabError(f"cannot read '{path}': no such file. Install it with 'apt-get install "
                       "dataset-fashion-mnist', or pass its folder with --data") from None
    except (OSError, EOFError, zlib.error) as error:
        raise LabError(f"cannot read '{path}': {error}") from None
    start = 4 + 4 * dimensions
    if len(data) < start or data[:4] != bytes((0, 0, _UNSIGNED_BYTES, dimensions)):
        raise LabError(f"'{path}' is no IDX file of bytes with {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", data[4:start])
    array = numpy.frombuffer(data, numpy.uint8, offset=start)
    size = 1
    for n in shape:
        size *= n
    if array.size != size:
        raise LabError(f"'{path}' has {array.size} values; its header says {size}")
    return array.reshape(shape).copy()  # PyTorch warns about memory that is read-only


def png(pixels: Any) -> bytes:
    """A gray image as PNG."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1))
            + chunk(b"IEND", b""))


class Fashion:
    """The images and labels of both splits: arrays of shape [N, 28, 28] and [N]."""

    def __init__(self, folder: str) -> None:
        self.arrays = {}
        for split, name in SPLITS.items():
            place = pathlib.Path(folder)
            images = read_idx(place / f"{name}-images-idx3-ubyte.gz", 3)
            labels = read_idx(place / f"{name}-labels-idx1-ubyte.gz", 1)
            if len(images) != len(labels) or labels.max(initial=0) >= len(CLASSES):
                raise LabError(f"'{folder}': the images and labels of '{name}' do not fit together")
            self.arrays[split] = images, labels

    def write(self, split: str, name: str, path: pathlib.Path) -> None:
        """The samples of a pack have the order of the arrays."""
        schema = {"image": "image", "label": "i64"}
        with Writer(path, schema, classes=list(CLASSES), block_samples=256,
                    **options(name)) as writer:
            for number, (pixels, label) in enumerate(zip(*self.arrays[split])):
                writer.add(key=f"{number:06d}", image=png(pixels), label=int(label))
