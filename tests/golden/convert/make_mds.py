# SPDX-License-Identifier: Apache-2.0
"""Datasets of Mosaic Streaming with every encoding, and what they hold.

    build/peers/mosaic/bin/python tests/golden/convert/make_mds.py --out tests/golden/convert/mds
"""

import decimal
import importlib.metadata
import pathlib
import shutil
import sys
import tempfile

import golden_tools as golden
import numpy as np
from PIL import Image

LAB = pathlib.Path(__file__).resolve().parents[3] / "python" / "penstock" / "lab"
sys.path.insert(0, str(LAB / "loaders" / "worker"))
from sides.mosaic import MDSWriter  # noqa: E402  it copes with torchvision

COLUMNS = {
    "jpeg": "jpeg", "png": "png", "pil": "pil", "gray": "pil", "frames": "list[jpeg]",
    "raw_frames": "list[pil]", "array_frames": "jpeg_array", "bytes": "bytes", "str": "str",
    "json": "json", "int": "int", "str_int": "str_int", "str_float": "str_float",
    "str_decimal": "str_decimal", "free": "ndarray", "typed": "ndarray:int16",
    "fixed": "ndarray:float32:2,3", "rgb": "ndarray:uint8:5,4,3",
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32",
                               "int64", "float16", "float32", "float64")},
}  # fmt: skip


def number(name, i):
    dtype = getattr(np, name)
    if "float" in name:
        return dtype(i * 0.37 - 1)
    edge = np.iinfo(dtype)
    top = min(int(edge.max), 2**63 - 1)
    return dtype([0, int(edge.min), top, 1, 7, 100][i % 6])


def sample(i, path):
    """What is written, and what is expected."""
    data = path.read_bytes()
    color, gray = golden.picture(i), golden.picture(i, "L", 7, 5)
    frames = [golden.encoded(golden.picture(i + k), "JPEG") for k in range(i % 3 + 1)]
    png = golden.encoded(color, "PNG")
    rgb = np.asarray(golden.picture(i, width=4, height=5))
    free = np.arange(6, dtype=np.float64).reshape(3, 2) * i
    typed = np.arange(-2, 3, dtype=np.int16) * i
    fixed = np.arange(6, dtype=np.float32).reshape(2, 3) / (i + 1)
    written = {
        "jpeg": Image.open(path), "png": color, "pil": color, "gray": gray,
        "frames": [Image.open(path)] * (i % 2 + 1), "raw_frames": [color, gray],
        "array_frames": frames, "bytes": golden.blob(i), "str": golden.texts(i),
        "json": golden.document(i), "int": i - 3, "str_int": -i * 10**12, "str_float": i / 7,
        "str_decimal": decimal.Decimal(i) / 8, "free": free, "typed": typed, "fixed": fixed,
        "rgb": rgb,
    }  # fmt: skip
    expected = {
        "jpeg": golden.sha256(data), "png": golden.sha256(png), "pil": golden.of_image(color),
        "gray": golden.of_image(gray), "frames": [golden.sha256(data)] * (i % 2 + 1),
        "raw_frames": [golden.of_image(color), golden.of_image(gray)],
        "array_frames": [golden.sha256(frame) for frame in frames],
        "bytes": golden.sha256(golden.blob(i)), "str": golden.texts(i), "json": golden.document(i),
        "int": i - 3, "str_int": -i * 10**12, "str_float": i / 7,
        "str_decimal": str(decimal.Decimal(i) / 8), "free": free.tolist(), "typed": typed.tolist(),
        "fixed": fixed.tolist(), "rgb": golden.of_image(golden.picture(i, width=4, height=5)),
    }  # fmt: skip
    for name in COLUMNS:
        if name not in written:
            written[name] = number(name, i)
            expected[name] = number(name, i).item()
    return written, expected


def write(out, columns, samples, compression=None, size_limit=6000):
    shutil.rmtree(out, ignore_errors=True)
    with MDSWriter(columns=columns, out=str(out), compression=compression,
                   size_limit=size_limit) as writer:
        for written, _ in samples:
            writer.write({name: written[name] for name in columns})


def main():
    options = golden.options(__doc__)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    version = "mosaicml-streaming " + importlib.metadata.version("mosaicml-streaming")
    with tempfile.TemporaryDirectory() as work:
        paths = golden.photographs(options.photos, options.count, pathlib.Path(work))
        samples = [sample(i, path) for i, path in enumerate(paths)]
        limit = 6000 if options.count < 100 else 4 << 20
        write(out / "all", COLUMNS, samples, size_limit=limit)
        few = {name: COLUMNS[name] for name in ("jpeg", "str", "int")}
        for algorithm in ("gz", "bz2", "zstd"):
            write(out / algorithm, few, samples, algorithm, limit)
        write(out / "pickle", {"int": "int", "pkl": "pkl"},
              [({"int": i, "pkl": {"a": i}}, None) for i in range(2)])
    everything = [expected for _, expected in samples]
    golden.record(out, "all", version, everything)
    for algorithm in ("gz", "bz2", "zstd"):
        golden.record(out, algorithm, version, [{n: s[n] for n in few} for s in everything])


if __name__ == "__main__":
    main()
