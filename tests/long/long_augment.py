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

import _warps
import numpy as np
from _draws import Draw
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


def results(pack, text, mode, seed=0):
    """Sample number and pixels, one after the other."""
    pipeline = f"image: decode {mode} | {text} | center_crop {SIDE} | tensor u8; label: tensor"
    with penstock.Loader(pack, 16, pipeline=pipeline, output="numpy", shuffle=False, threads=1,
                         seed=seed, drop_last=False, return_info=True) as loader:  # fmt: skip
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
            name = name_of(made[0][0]) + " by wide kernels" * (kind is colors.wide_blur)
            tests.run(f"{name}, {mode}", compare, pack, images, made, mode, most)
    made = [chain(rng) for _ in range(PARAMETERS["rgb"])]
    tests.run("point operations in a row", compare, pack, images, made, "rgb", 0)
    for kind, name in ((ImageEnhance.Brightness, "brightness"), (ImageEnhance.Contrast, "contrast"),
                       (ImageEnhance.Color, "saturation")):
        made = [any_factor(rng, kind, name) for _ in range(PARAMETERS["rgb"])]
        tests.run(f"{name} by any factor", compare, pack, images, made, "rgb", 1)


# ---- geometry: what is drawn for each sample is computed again in _draws.py


def turn(rng):
    """A range of angles with all kinds of ends."""
    return [float(rng.uniform(0, 180)), (float(rng.uniform(-90, 0)), float(rng.uniform(0, 400))),
            (90, 90), (180, 180), (-90, -90)][rng.choice(5, p=[0.4, 0.45, 0.05, 0.05, 0.05])]


def rotation(rng):
    center = {"center": tuple(float(n) for n in rng.uniform(-50, 300, 2))}
    return "random_rotation", {"degrees": turn(rng)} | (center if rng.random() < 0.3 else {})


def affine(rng):
    scale = tuple(sorted(float(n) for n in rng.choice([0.3, 0.8, 1, 1, 1, 1.2, 3], 2)))
    slants = (0, 25.5, (-10, 45), (0, 0, -30, 30), (-60, 60, -60, 60))
    shift = tuple(float(n) for n in rng.choice([0, 0.1, 0.45, 1], 2))
    return "random_affine", {"degrees": turn(rng) if rng.random() < 0.7 else 0, "translate": shift,
                             "scale": scale, "shear": slants[rng.integers(len(slants))]}


def perspective(rng):
    return "random_perspective", {"distortion_scale": float(rng.uniform(0, 0.95)), "p": 0.9}


def pad(rng):
    sides = tuple(int(n) for n in rng.integers(0, 300, 4))
    modes = ("constant", "edge", "reflect", "symmetric")
    return "pad", {"padding": sides, "padding_mode": modes[rng.integers(4)]}


def words(name, options):
    text = ((k, ",".join(map(str, v)) if isinstance(v, tuple) else v) for k, v in options.items())
    return name + "".join(f" {key}={value}" for key, value in text)


def cut(pixels):
    """The center, as center_crop has it."""
    y, x = (round((n - SIDE) / 2) for n in pixels.shape[:2])
    return pixels[y : y + SIDE, x : x + SIDE]


def compare_warps(pack, images, rng, kind, mode, interpolation):
    values = n = 0
    for seed in range(PARAMETERS[mode]):
        name, options = kind(rng)
        options["fill"] = int(rng.integers(256)) if mode == "gray" or rng.random() < 0.5 else (
            tuple(int(v) for v in rng.integers(0, 256, 3)))
        options |= {"interpolation": interpolation} if interpolation else {}
        for sample, found in results(pack, words(name, options), mode, seed):
            image = images[sample].convert(MODES[mode])
            expected, _ = getattr(_warps, name)(image, Draw(seed, 0, sample, name), **options)
            expected = cut(np.asarray(expected)).reshape(found.shape)
            assert np.array_equal(found, expected), (
                f"{words(name, options)}: sample {sample}, seed {seed}: "
                f"{(found != expected).sum()} values differ"
            )
            values, n = values + found.size, n + 1
    return f"{n} images, {values} values, none of them differs"


def check_geometry(tests, pack, images, rng):
    for mode in MODES:
        for kind in (rotation, affine, perspective):
            for interpolation in ("nearest", "bilinear", "bicubic"):
                tests.run(f"{kind.__name__}, {interpolation}, {mode}", compare_warps, pack, images,
                          rng, kind, mode, interpolation)
        tests.run(f"pad, {mode}", compare_warps, pack, images, rng, pad, mode, None)


def main():
    tests = Tests("augment")
    rng = np.random.default_rng(19)
    images = squares(rng)
    with tempfile.TemporaryDirectory() as folder:
        pack = write_pack(pathlib.Path(folder) / "a.pen",
                          [encoded(image, compress_level=0) for image in images], mode="raw")
        check_colors(tests, pack, images, rng)
        check_geometry(tests, pack, images, rng)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
