# SPDX-License-Identifier: Apache-2.0
"""Pixels as they should be: Pillow decodes with libjpeg-turbo, torch resamples with antialiasing.
Without torch, Pillow resamples: it rounds some pixels differently.

    python -m penstock.lab.loaders.reference cases    < request > cases
    python -m penstock.lab.loaders.reference encoded  < request

cases    picks photographs with sizes of their own and a box for each: the one that penstock draws
         for it. Pixels go to crops.npy, validation.npy and corner.npy, which has some pixels that
         are not resized.
encoded  writes the photographs anew with Pillow: JPEG of a quality, longer side at most so long.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from penstock.lab.loaders import draws
from penstock.lab.loaders.worker.sides.draws import CORNER, centre, resized

try:
    import torch
except ImportError:
    torch = None

ORIENTATION = 0x0112
Pixels = Any  # uint8 of (height, width, 3)


def plain_rgb(file: str) -> bool:
    """Others do not turn images by their EXIF orientation, nor agree on four colors."""
    with Image.open(file) as image:
        return bool(image.format == "JPEG" and image.mode == "RGB"
                    and image.getexif().get(ORIENTATION, 1) == 1)


def decoded(file: str) -> Pixels:
    with Image.open(file) as image:
        return np.asarray(image)


def resampled(pixels: Pixels, height: int, width: int) -> Pixels:
    if torch is None:
        image = Image.fromarray(pixels)
        return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    planes = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None]
    out = torch.nn.functional.interpolate(planes, (height, width), mode="bilinear", antialias=True)
    return out[0].permute(1, 2, 0).numpy()


def crop(pixels: Pixels, box: list[int], size: int) -> Pixels:
    x, y, w, h = box
    return resampled(pixels[y : y + h, x : x + w], size, size)


def validation(pixels: Pixels, short: int, size: int) -> Pixels:
    width, height = resized(pixels.shape[1], pixels.shape[0], short)
    x, y = centre(width, height, size)
    return resampled(pixels, height, width)[y : y + size, x : x + size]


def pick(files: list[str], count: int) -> Iterator[tuple[int, str]]:
    """(id, file) of photographs that differ in size."""
    seen: set[tuple[int, int]] = set()
    for number, file in enumerate(files):
        if len(seen) == count:
            return
        with Image.open(file) as image:
            size = image.size
        if size not in seen and min(size) >= CORNER and plain_rgb(file):
            seen.add(size)
            yield number, file


def make_cases(request: dict[str, Any]) -> list[dict[str, Any]]:
    cases, crops, centres, corners = [], [], [], []
    size = request["size"]
    for number, file in pick(request["files"], request["count"]):
        pixels = decoded(file)
        height, width = pixels.shape[:2]
        box = draws.box_of(request["seed"], 0, number, width, height)
        cases.append({"id": number, "wh": [width, height], "box": box})
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


def encode(request: dict[str, Any]) -> None:
    out = pathlib.Path(request["out"])
    out.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(request["files"]):
        with Image.open(file) as opened:
            image = opened.convert("RGB")
        shrink = min(1.0, request["max_side"] / max(image.size)) if request["max_side"] else 1.0
        if shrink < 1:
            width, height = (max(1, round(side * shrink)) for side in image.size)
            image = image.resize((width, height), Image.Resampling.BOX)
        image.save(out / f"{number:08}.jpg", quality=request["quality"])
    (out / "done").touch()


def main() -> None:
    request = json.load(sys.stdin)
    if sys.argv[1] == "cases":
        json.dump(make_cases(request), sys.stdout)
    else:
        encode(request)


if __name__ == "__main__":
    main()
