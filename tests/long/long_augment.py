# SPDX-License-Identifier: Apache-2.0
"""Operations that augment images against Pillow, or formulas as published in NumPy.

Each operation runs with random parameters on all images, in color and, where it can, in gray.
PENSTOCK_SCALE=full takes 1,000 photographs (PENSTOCK_PHOTOS, or ../shared/data/photos beside the
tree) and 20 parameters of each operation (2 in gray), anything else 12 of them and 2 parameters.
Without photographs some are made here. With PENSTOCK_CPU set all of it holds as well.
"""

import pathlib
import re
import sys
import tempfile

import numpy as np
from _package import ROOT, Tests, encoded, painted, penstock, photo_files, scaled, write_pack
from PIL import Image, ImageEnhance

sys.path.insert(0, str(ROOT / "tests" / "python"))

import colour_reference as colors

SIDE = 224
PARAMETERS = {"rgb": scaled(20, 2), "gray": scaled(2, 1)}
MODES = {"rgb": "RGB", "gray": "L"}


def squares(rng):
    """224 x 224 pixels of each photograph, or of images made here."""
    files = photo_files(12)[: scaled(1000, 12)]
    if not files:
        return [Image.fromarray(painted(rng, SIDE, SIDE)) for _ in range(12)]
    images = []
    for file in files:
        image = Image.open(file).convert("RGB")
        images.append(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    return images


def results(pack, text, mode):
    """Sample number and pixels, one after the other."""
    pipeline = f"image: decode {mode} | {text} | center_crop {SIDE} | tensor u8; label: tensor"
    with penstock.Loader(pack, 16, pipeline=pipeline, output="numpy", shuffle=False, threads=1,
                         drop_last=False, return_info=True) as loader:  # fmt: skip
        for batch in loader:
            for i in np.flatnonzero(batch.info.valid):
                yield int(batch.label[i]), batch.image[i]


def compare(pack, images, made, mode, most):
    """`made` are pairs of a text and what does the same to an image."""
    worst, share, n = 0, 0.0, 0
    for text, expected in made:
        for sample, found in results(pack, text, mode):
            apart, differs = colors.difference(found, expected(images[sample].convert(MODES[mode])))
            assert apart <= most, f"{text}: sample {sample} differs by {apart}"
            worst, share, n = max(worst, apart), share + differs, n + 1
    assert n == len(images) * len(made)
    return f"{n} images, at most {worst} apart, {share / n:.4%} of the values differ"


def chain(rng):
    """Two to six point operations."""
    kinds = [*colors.POINTS, colors.brightness, colors.contrast]
    steps = [kinds[i](rng) for i in rng.integers(0, len(kinds), rng.integers(2, 7))]

    def expected(image):
        for _, call in steps:
            image = call(image)
        return image

    return " | ".join(text for text, _ in steps), expected


def any_factor(rng, kind, parameter):
    """A factor that is no multiple of 1 / 65536: Pillow has it in single precision."""
    factor = float(rng.uniform(0, 3))
    return (f"color_jitter {parameter}={factor!r},{factor!r}",
            lambda image: kind(image).enhance(factor))


def name_of(text):
    return re.match(r"color_jitter \w+|\w+", text)[0]


def check_colors(tests, pack, images, rng):
    for kind, most in colors.EXACT.items():
        for mode in MODES if kind in colors.GRAY_TOO else ["rgb"]:
            made = [kind(rng) for _ in range(PARAMETERS[mode])]
            tests.run(f"{name_of(made[0][0])}, {mode}", compare, pack, images, made, mode, most)
    made = [chain(rng) for _ in range(PARAMETERS["rgb"])]
    tests.run("point operations in a row", compare, pack, images, made, "rgb", 0)
    for kind, name in ((ImageEnhance.Brightness, "brightness"), (ImageEnhance.Contrast, "contrast"),
                       (ImageEnhance.Color, "saturation")):
        made = [any_factor(rng, kind, name) for _ in range(PARAMETERS["rgb"])]
        tests.run(f"{name} by any factor", compare, pack, images, made, "rgb", 1)


def main():
    tests = Tests("augment")
    rng = np.random.default_rng(19)
    images = squares(rng)
    with tempfile.TemporaryDirectory() as folder:
        pack = write_pack(pathlib.Path(folder) / "a.pen",
                          [encoded(image, compress_level=0) for image in images], mode="raw")
        check_colors(tests, pack, images, rng)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
