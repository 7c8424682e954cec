#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process: packs with one writer when it is told to.

    serve.py MODULE         commands and answers are lines of JSON on stdin and stdout

Runs in the environment of the writer, so it uses nothing but the standard library, and Pillow and
NumPy for pixels.
"""

import importlib
import io
import os
import pathlib
import sys
import time

# An image that is encoded again is compared with what Pillow makes of it at this quality. The mean
# difference of all pixels may be that large, in steps of 1/255: encoders round differently.
QUALITY, ENCODED_DIFFERENCE = 90, 0.5


def size_of(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.is_file())


def pixels_of(data):
    """RGB of an encoded image; pixels are returned as they are."""
    import numpy as np
    from PIL import Image

    if not isinstance(data, bytes):
        return np.asarray(data)
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


def encoded_again(data):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels_of(data)).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def same_image(found, original, stores):
    """Whether a sample is its file: byte by byte, pixel by pixel, or about the same picture."""
    if stores == "bytes":
        return bytes(found) == original
    have = pixels_of(found)
    want = pixels_of(encoded_again(original) if stores == "encoded" else original)
    if have.shape != want.shape:
        return False
    limit = 0 if stores == "pixels" else ENCODED_DIFFERENCE
    return bool(abs(have.astype("int16") - want).mean() <= limit)


def check_samples(samples, files, stores):
    """Raises ValueError unless every file is there once, under its number."""
    seen = set()
    for i, data in samples:
        if i in seen or not 0 <= i < len(files):
            raise ValueError(f"sample {i}: expected each of {len(files)} once")
        seen.add(i)
        if not same_image(data, pathlib.Path(files[i]).read_bytes(), stores):
            raise ValueError(f"sample {i}: differs from {files[i]}")
    if len(seen) != len(files):
        raise ValueError(f"expected {len(files)} samples, found {len(seen)}")
    return len(seen)


class Worker:
    def __init__(self, module):
        self.module, self.task = importlib.import_module(f"packers.{module}"), None
        self.side = None

    def prepare(self, task):
        listing = pathlib.Path(task["list"]).read_text(encoding="utf-8")
        self.task = {**task, "files": listing.splitlines()}
        self.side = self.module.Side(self.task)
        return {"versions": self.side.versions}

    def turn(self):
        """Seconds until the writer returns, and until everything is on the disk."""
        os.mkdir(self.task["out"])
        began = time.perf_counter()
        self.side.write()
        returned = time.perf_counter()
        os.sync()
        return {"seconds": time.perf_counter() - began, "returned": returned - began,
                "samples": len(self.task["files"]), "bytes": size_of(self.task["out"])}

    def check(self):
        files = self.task["files"]
        return {"samples": check_samples(self.side.read(), files, self.task["stores"])}


def main():
    # Not this folder: its modules have the names of the packages that they are about.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    import common  # noqa: F401  the path of the next
    from answers import serve

    serve(Worker, sys.argv[1])


if __name__ == "__main__":
    main()
