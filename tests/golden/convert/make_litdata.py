# SPDX-License-Identifier: Apache-2.0
"""Datasets of LitData's `optimize` with every simple type, and what they hold.

    build/peers/litdata/bin/python tests/golden/convert/make_litdata.py \\
        --out tests/golden/convert/litdata
"""

import functools
import importlib.metadata
import pathlib
import shutil
import tempfile

import golden_tools as golden
import litdata
import numpy as np
import torch
from PIL import Image

NUMPY = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32",
         "float64", "bool")  # fmt: skip
TORCH = ("float32", "float64", "float16", "uint8", "int8", "int16", "int32", "int64", "bool")


def sample(paths, i):
    """What is written. The structure is nested, and one value is a list of JPEGs."""
    color = golden.picture(i)
    return {
        "jpeg": Image.open(paths[i]), "pil": color, "gray": golden.picture(i, "L", 7, 5),
        "frames": [Image.open(paths[i])] * (i % 2 + 1), "bytes": golden.blob(i),
        "str": golden.texts(i), "int": i - 3, "float": i / 7, "bool": i % 2 == 0,
        "rgb": np.asarray(golden.picture(i, width=4, height=5)),
        "nested": {"size": (i, 2 * i), "name": f"n{i}"},
        "line": {name: np.arange(4).astype(name) + (np.array(i).astype(name)) for name in NUMPY},
        "grid": {name: (np.arange(6).reshape(2, 3) + i).astype(name) for name in NUMPY},
        "row": {name: (torch.arange(4) + i).to(getattr(torch, name)) for name in TORCH},
        "cube": {name: (torch.arange(8).reshape(2, 2, 2) + i).to(getattr(torch, name))
                 for name in TORCH},
        "scalar": torch.tensor(i * 0.5),
    }  # fmt: skip


def expected(paths, i):
    data = paths[i].read_bytes()
    written = sample(paths, i)
    found = {
        "jpeg": golden.sha256(data), "pil": golden.of_image(written["pil"]),
        "gray": golden.of_image(written["gray"]), "frames": [golden.sha256(data)] * (i % 2 + 1),
        "bytes": golden.sha256(golden.blob(i)), "rgb": golden.of_image(
            golden.picture(i, width=4, height=5)),
        "str": golden.texts(i), "int": i - 3, "float": i / 7, "bool": int(i % 2 == 0),
        "nested.size.0": i, "nested.size.1": 2 * i, "nested.name": f"n{i}", "scalar": i * 0.5,
    }  # fmt: skip
    for group in ("line", "grid", "row", "cube"):
        for name, array in written[group].items():
            found[f"{group}.{name}"] = (array * 1 if name != "bool" else array + 0).tolist()
    return found


def pair(paths, i):
    """A tuple, as in a dataset of images and labels."""
    return Image.open(paths[i]), i % 3


def write(out, make, count, **more):
    shutil.rmtree(out, ignore_errors=True)
    limit = {"chunk_size": 4} if count < 100 else {"chunk_bytes": "4MB"}
    litdata.optimize(fn=make, inputs=list(range(count)), output_dir=str(out), num_workers=1,
                     **limit, **more)


def main():
    options = golden.options(__doc__)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    version = "litdata " + importlib.metadata.version("litdata")
    with tempfile.TemporaryDirectory() as work:
        paths = golden.photographs(options.photos, options.count, pathlib.Path(work))
        write(out / "all", functools.partial(sample, paths), options.count)
        write(out / "pairs", functools.partial(pair, paths), options.count)
        golden.record(out, "all", version, [expected(paths, i) for i in range(options.count)])
        golden.record(out, "pairs", version, [
            {"0": golden.sha256(path.read_bytes()), "1": i % 3} for i, path in enumerate(paths)])


if __name__ == "__main__":
    main()
