# SPDX-License-Identifier: Apache-2.0
"""A .beton file of FFCV with every field, and what it holds.

    build/peers/ffcv/bin/python tests/golden/convert/make_ffcv.py --out tests/golden/convert/ffcv

The file is compressed: a page of FFCV has 2 MiB, most of them zeros.
"""

import gzip
import importlib.metadata
import pathlib
import tempfile

import golden_tools as golden
import numpy as np
import torch
from ffcv.fields import (
    BytesField,
    FloatField,
    IntField,
    JSONField,
    NDArrayField,
    RGBImageField,
    TorchTensorField,
)
from ffcv.reader import Reader
from ffcv.writer import DatasetWriter
from PIL import Image

FIELDS = {
    "raw": RGBImageField(write_mode="raw"),
    "label": IntField(),
    "jpg": RGBImageField(write_mode="jpg"),
    "mixed": RGBImageField(write_mode="proportion", compress_probability=0.5),
    "score": FloatField(),
    "bytes": BytesField(),
    "json": JSONField(),
    **{
        f"a_{name}": NDArrayField(np.dtype(name), (2, 3))
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "float32",
                     "float64", "bool")
    },
    "rgb": NDArrayField(np.dtype("uint8"), (5, 4, 3)),
    "tensor": TorchTensorField(torch.float32, (4,)),
}  # fmt: skip


class Samples:
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def arrays(self, i):
        return {name: (np.arange(6).reshape(2, 3) + i).astype(field.dtype)
                for name, field in FIELDS.items() if name.startswith("a_")}

    def __getitem__(self, i):
        i = int(i)
        photo = np.asarray(Image.open(self.paths[i]).convert("RGB"))
        values = {
            "raw": photo, "label": i - 3, "jpg": photo, "mixed": photo, "score": i / 7,
            "bytes": np.frombuffer(b"b" + golden.blob(i), np.uint8), "json": golden.document(i),
            **self.arrays(i), "rgb": np.asarray(golden.picture(i, width=4, height=5)),
            "tensor": torch.arange(4).float() / (i + 1),
        }  # fmt: skip
        return tuple(values[name] for name in FIELDS)

    def expected(self, i, jpegs):
        image = Image.open(self.paths[i]).convert("RGB")
        raw = golden.of_image(image)
        return {
            "raw": raw, "label": i - 3, "jpg": golden.sha256(jpegs["jpg"]),
            "mixed": golden.sha256(jpegs["mixed"]) if "mixed" in jpegs else raw, "score": i / 7,
            "bytes": golden.sha256(b"b" + golden.blob(i)), "json": golden.document(i),
            **{name: (array * 1).tolist() for name, array in self.arrays(i).items()},
            "rgb": golden.of_image(golden.picture(i, width=4, height=5)),
            "tensor": (torch.arange(4).float() / (i + 1)).tolist(),
        }  # fmt: skip


def jpegs_of(path):
    """The JPEGs that FFCV encoded, found with FFCV's own reader."""
    reader = Reader(str(path))
    sizes = {int(ptr): int(size) for ptr, size in zip(reader.alloc_table["ptr"],
                                                      reader.alloc_table["size"])}
    data = path.read_bytes()
    names = [name for name in FIELDS if name in ("jpg", "mixed")]
    numbers = {name: list(FIELDS).index(name) for name in names}
    found = []
    for row in reader.metadata:
        images = {name: row[numbers[name]] for name in names}
        found.append({
            name: data[int(image["data_ptr"]) :][: sizes[int(image["data_ptr"])]]
            for name, image in images.items() if image["mode"] == 0})
    return found


def main():
    options = golden.options(__doc__)
    options.out.mkdir(parents=True, exist_ok=True)
    version = "ffcv " + importlib.metadata.version("ffcv")
    with tempfile.TemporaryDirectory() as work:
        paths = golden.photographs(options.photos, options.count, pathlib.Path(work))
        samples = Samples(paths)
        path = (options.out if options.count > 100 else pathlib.Path(work)) / "all.beton"
        DatasetWriter(str(path), FIELDS, page_size=1 << 21, num_workers=1).from_indexed_dataset(
            samples)
        jpegs = jpegs_of(path)
        golden.record(options.out, "all", version, [
            samples.expected(i, jpegs[i]) for i in range(len(samples))])
        if options.count <= 100:
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
            (options.out / "all.beton.golden.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
