# SPDX-License-Identifier: Apache-2.0
"""FFCV: one .beton file, by DatasetWriter, which starts its own processes. options.field:

raw     RGBImageField with its default: pixels
jpg     RGBImageField(write_mode="jpg"): JPEG encoded again, at its default quality
bytes   BytesField: the files, which FFCV's image decoders cannot read
"""

import importlib.metadata

import numpy as np
from ffcv import fields, reader, writer
from sides.ffcv import Folder


class Files(Folder):
    def __getitem__(self, i):
        return np.fromfile(self.files[i], np.uint8), i


# Of the file: an image must fit into one. The default of 8 MiB is too small for some raw ones.
PAGE = 64 << 20
KINDS = {"raw": (fields.RGBImageField, {}, Folder),
         "jpg": (fields.RGBImageField, {"write_mode": "jpg"}, Folder),
         "bytes": (fields.BytesField, {}, Files)}


class Side:
    def __init__(self, task):
        self.task, self.path = task, f"{task['out']}/photos.beton"
        self.versions = {"ffcv": importlib.metadata.version("ffcv")}

    def write(self):
        field, settings, files = KINDS[self.task["options"]["field"]]
        columns = {"image": field(**settings), "label": fields.IntField()}
        page = {"page_size": PAGE} if self.task["stores"] == "pixels" else {}
        out = writer.DatasetWriter(self.path, columns, num_workers=self.task["processes"], **page)
        out.from_indexed_dataset(files(self.task["files"]))

    def read(self):
        """With the tables that FFCV reads: its loader delivers images of one size only."""
        beton, data = reader.Reader(self.path), np.memmap(self.path, np.uint8, "r")
        sizes = {int(row["ptr"]): int(row["size"]) for row in beton.alloc_table}
        kind = beton.handlers["image"].metadata_type
        for image, label in zip(beton.metadata["f0"], beton.metadata["f1"]):
            image = np.frombuffer(image.tobytes(), kind)[0]
            start = int(image["ptr" if "ptr" in kind.names else "data_ptr"])
            stored = data[start : start + sizes[start]].tobytes()
            if self.task["stores"] == "pixels":
                stored = np.frombuffer(stored, np.uint8).reshape(image["height"], image["width"], 3)
            yield int(np.frombuffer(label.tobytes(), "<i8")[0]), stored
