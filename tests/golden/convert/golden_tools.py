# SPDX-License-Identifier: Apache-2.0
"""Samples that the real libraries write, and what a reader has to find. For make_*.py, which run
in the environments of `penstock-lab setup`.

What is expected is JSON: numbers and texts as they are, {"sha256": ...} for bytes, {"pixels": ...}
for an image of which only the pixels are kept, a list for a clip.
"""

import argparse
import hashlib
import json
import pathlib
import random


def options(doc):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--photos", type=pathlib.Path, help="a folder of JPEGs to use")
    return parser.parse_args()


def sha256(data):
    return {"sha256": hashlib.sha256(data).hexdigest()}


def pixels(mode, size, data):
    """Of an image of Pillow: mode, (width, height), tobytes()."""
    return {"pixels": hashlib.sha256(repr((mode, tuple(size))).encode() + data).hexdigest()}


def of_image(image):
    return pixels(image.mode, image.size, image.tobytes())


def picture(number, mode="RGB", width=24, height=18):
    """A smooth image that differs for every number."""
    from PIL import Image

    data = bytes(
        value % 256
        for y in range(height)
        for x in range(width)
        for value in (x * 9 + number * 31, y * 11 + number * 17, (x + y) * 5 + number)
    )
    return Image.frombytes("RGB", (width, height), data).convert(mode)


def encoded(image, kind, **more):
    import io

    to = io.BytesIO()
    image.save(to, kind, **more)
    return to.getvalue()


def photographs(folder, count, work):
    """Paths of `count` JPEGs: of a folder, or made here."""
    if folder:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".jpg")
        return [paths[i % len(paths)] for i in range(count)]
    work.mkdir(parents=True, exist_ok=True)
    paths = [work / f"{i}.jpg" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(encoded(picture(i), "JPEG", quality=80))
    return paths


def texts(number):
    return ["", "a caption", "Grüße, 世界", "line\nline", '"quoted", commas', "x" * 40][number % 6]


def document(number):
    """A JSON value."""
    return {"number": number, "tags": ["a", texts(number)], "none": None, "box": [0.5, number / 8]}


def blob(number):
    return random.Random(number).randbytes(number * 13 % 50)


def record(out, name, version, samples):
    """What is expected, a line for each sample."""
    lines = [json.dumps(sample, ensure_ascii=False) for sample in samples]
    text = '{"library": %s, "samples": [\n%s\n]}\n' % (json.dumps(version), ",\n".join(lines))
    (out / f"{name}.expect.json").write_text(text, encoding="utf-8")
