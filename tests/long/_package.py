# SPDX-License-Identifier: Apache-2.0
"""What the long tests of the Python package share: finding it, pictures, packs, counting."""

import io
import os
import pathlib
import sys
import time

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD") or ROOT / "build")
FULL = os.environ.get("PENSTOCK_SCALE") == "full"

if os.environ.get("PENSTOCK_PYTHON") != "installed":
    sys.path.insert(0, str(BUILD / "python"))

import penstock  # noqa: E402


def scaled(full, sample):
    return full if FULL else sample


# ---- pictures


def photo_files(sample):
    """All photographs, or `sample` of them; none when there are none on this machine."""
    photos = os.environ.get("PENSTOCK_PHOTOS") or ROOT.parent / "shared" / "data" / "photos"
    files = sorted(file for file in pathlib.Path(photos).glob("*/*") if file.is_file())
    return files if FULL or not files else files[:: max(1, len(files) // sample)][:sample]


def painted(rng, width, height):
    """Waves, edges and noise: every frequency, and all values."""
    y, x = np.mgrid[:height, :width]
    layers = []
    for _ in range(3):
        fx, fy, phase, slow = rng.uniform(0.01, 0.5, 4)
        wave = np.sin(x * fx + y * fy + phase * 12) * 70 + np.cos((x - y) * slow / 9) * 60
        layers.append(wave + ((x // 13 + y // 7) % 2) * 30 + rng.normal(0, 9, x.shape) + 110)
    return np.clip(np.dstack(layers), 0, 255).astype(np.uint8)


def encoded(pixels, kind="PNG", **options):
    out = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(out, kind, **options)
    return out.getvalue()


def orientation(number):
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


def write_pack(path, images, **settings):
    """Sample i is image i; the label is i as well."""
    with penstock.Writer(path, {"image": "image", "label": "i64"}, **settings) as writer:
        for i, data in enumerate(images):
            writer.add(image=data, label=i)
    return penstock.open(path)


# ---- tests


class Tests:
    """Named checks; each returns its figures as text, or raises AssertionError."""

    def __init__(self, what):
        self.what, self.passed, self.failed = what, 0, 0

    def run(self, name, call, *args, **more):
        began = time.monotonic()
        try:
            figures, verdict = call(*args, **more), ""
            self.passed += 1
        except (AssertionError, penstock.Error) as error:
            figures, verdict = f"{type(error).__name__}: {error}", "FAILED: "
            self.failed += 1
        seconds = time.monotonic() - began
        print(f"{self.what}: {name}: {verdict}{figures}, {seconds:.1f} s", flush=True)

    def end(self, skipped=0):
        tail = f", {skipped} skipped" if skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{tail}")
        return 1 if self.failed else 0
