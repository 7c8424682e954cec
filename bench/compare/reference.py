#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pixels as they should be: libjpeg-turbo decodes, torch resamples with antialiasing.

    build/venv/bin/python bench/compare/reference.py cases    < request > cases
    build/venv/bin/python bench/compare/reference.py encoded  < request

cases    picks photographs with sizes of their own and a box for each: the one that penstock draws
         for it, computed in tests/long/_draws.py. Pixels go to crops.npy, validation.npy and
         corner.npy, which has some pixels that are not resized.
encoded  writes the photographs anew with Pillow: JPEG of a quality, longer side at most so long.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "bench")
sys.path.append(str(ROOT / "tests" / "long"))

import _draws  # noqa: E402
from loaders.draws import CORNER, centre, resized  # noqa: E402

ORIENTATION = 0x0112


def plain_rgb(file):
    """Others do not turn images by their EXIF orientation, nor agree on four colours."""
    with Image.open(file) as image:
        return (image.format == "JPEG" and image.mode == "RGB"
                and image.getexif().get(ORIENTATION, 1) == 1)


def decoded(program, file):
    ppm = subprocess.run([program, "--ppm", file], check=True, capture_output=True).stdout
    _, size, _, pixels = ppm.split(b"\n", 3)
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def resampled(pixels, height, width):
    planes = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None]
    out = torch.nn.functional.interpolate(planes, (height, width), mode="bilinear", antialias=True)
    return out[0].permute(1, 2, 0).numpy()


def crop(pixels, box, size):
    return resampled(pixels[box.y : box.y + box.h, box.x : box.x + box.w], size, size)


def validation(pixels, short, size):
    width, height = resized(pixels.shape[1], pixels.shape[0], short)
    x, y = centre(width, height, size)
    return resampled(pixels, height, width)[y : y + size, x : x + size]


def pick(files, count):
    """(id, file) of photographs that differ in size."""
    seen = set()
    for number, file in enumerate(files):
        if len(seen) == count:
            return
        with Image.open(file) as image:
            size = image.size
        if size not in seen and plain_rgb(file):
            seen.add(size)
            yield number, file


def make_cases(request):
    cases, crops, centres, corners = [], [], [], []
    program, size = f"{request['build']}/bench/jpeg_whole", request["size"]
    for number, file in pick(request["files"], request["count"]):
        pixels = decoded(program, file)
        height, width = pixels.shape[:2]
        draw = _draws.Draw(request["seed"], 0, number, "random_resized_crop")
        box = _draws.random_resized_crop(draw, width, height)
        cases.append({"id": number, "wh": [width, height], "box": list(box)})
        crops.append(crop(pixels, box, size))
        centres.append(validation(pixels, request["short"], size))
        corners.append(pixels[:CORNER, :CORNER])
    if not cases:
        sys.exit("no plain RGB JPEG among the photographs")
    work = pathlib.Path(request["work"])
    np.save(work / "crops.npy", np.stack(crops))
    np.save(work / "validation.npy", np.stack(centres))
    np.save(work / "corner.npy", np.stack(corners))
    return cases


def encode(request):
    out = pathlib.Path(request["out"])
    out.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(request["files"]):
        with Image.open(file) as image:
            image = image.convert("RGB")
        shrink = min(1.0, request["max_side"] / max(image.size))
        if shrink < 1:
            size = [max(1, round(side * shrink)) for side in image.size]
            image = image.resize(size, Image.Resampling.BOX)
        image.save(out / f"{number:08}.jpg", quality=request["quality"])
    (out / "done").touch()


def main():
    request = json.load(sys.stdin)
    if sys.argv[1] == "cases":
        json.dump(make_cases(request), sys.stdout)
    else:
        encode(request)


if __name__ == "__main__":
    main()
