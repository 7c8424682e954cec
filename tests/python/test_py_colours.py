# SPDX-License-Identifier: Apache-2.0
"""Operations on colors against Pillow and NumPy, on small images with all edges of parameters.
tests/long/long_augment.py does it on photographs. Skipped without NumPy and Pillow."""

import pytest
from example_tools import need
from py_tools import encoded, need_penstock

penstock = need_penstock()
need("numpy", "PIL")

import colour_reference as reference  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

WIDTH, HEIGHT = 45, 31


def made_images():
    """Noise, waves, one color, two colors, one channel that is flat, black, white."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    noise = rng.integers(0, 256, (HEIGHT, WIDTH, 3))
    waves = np.dstack([110 + 80 * np.sin(x / 5 + c) + 30 * np.cos(y / (3 + c)) for c in range(3)])
    flat = np.full((HEIGHT, WIDTH, 3), (9, 130, 251))
    two = np.where((x + y)[..., None] % 7 < 3, (20, 60, 200), (21, 180, 10))
    lame = noise.copy()
    lame[..., 1] = 77
    dark = noise // 16
    arrays = [noise, waves, flat, two, lame, dark, np.zeros_like(noise), np.full_like(noise, 255)]
    return [Image.fromarray(np.clip(a, 0, 255).astype(np.uint8)) for a in arrays]


IMAGES = made_images()


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("colors") / "a.pen"
    penstock.write(path, [{"image": encoded(image)} for image in IMAGES], {"image": "image"})
    return penstock.open(path)


def run(pack, text, mode="rgb", **more):
    pipeline = f"image: decode {mode} | center_crop {HEIGHT},{WIDTH} | {text} | tensor u8"
    loader = penstock.Loader(pack, len(IMAGES), shuffle=False, output="numpy", threads=1,
                             pipeline=pipeline, **more)
    found = next(iter(loader)).image.copy()
    loader.close()
    return found


def compare(pack, text, expected, mode, most):
    for image, found in zip(IMAGES, run(pack, text, mode)):
        worst, _ = reference.difference(found, expected(image.convert("L" if mode == "gray"
                                                                      else "RGB")))
        assert worst <= most, text


@pytest.mark.parametrize("mode", ["rgb", "gray"])
def test_operations_are_exact_at_their_edges(pack, mode):
    for kind, values in reference.EDGES:
        text, expected = kind(None, *values)
        compare(pack, text, expected, mode, reference.EXACT[kind])


def test_operations_are_exact_with_random_parameters(pack):
    rng = np.random.default_rng(11)
    for kind, most in reference.EXACT.items():
        for _ in range(3):
            text, expected = kind(rng)
            compare(pack, text, expected, "rgb", most)


@pytest.mark.parametrize("mode", ["rgb", "gray"])
def test_point_operations_in_a_row_are_those_one_after_the_other(pack, mode):
    rng = np.random.default_rng(3)
    kinds = list(reference.POINTS)
    if mode == "rgb":
        kinds += [reference.brightness, reference.contrast]
    for _ in range(12):
        steps = [kinds[i](rng) for i in rng.integers(0, len(kinds), 5)]

        def expected(image, steps=steps):
            for _, call in steps:
                image = call(image)
            return image

        compare(pack, " | ".join(text for text, _ in steps), expected, mode, 0)


def test_images_smaller_than_the_kernel(tmp_path):
    """The border of a sharper image is copied, a blurred one is mirrored more than once."""
    for width, height in ((1, 1), (2, 5), (3, 3), (7, 1), (4, 30)):
        image = IMAGES[0].crop((0, 0, width, height))
        penstock.write(tmp_path / f"{width}.pen", [{"image": encoded(image)}], {"image": "image"})
        for text, expected in (reference.sharpness(None, 3.5), reference.blur(None, 23, 31, 4)):
            pipeline = f"image: decode | {text} | center_crop {height},{width} | tensor u8"
            loader = penstock.Loader(tmp_path / f"{width}.pen", 1, output="numpy",
                                     pipeline=pipeline)
            found = next(iter(loader)).image[0]
            assert reference.difference(found, expected(image))[0] <= 1, (width, height)


def test_channels_are_permuted(pack):
    orders = set()
    for seed in range(24):
        found = run(pack, "random_channel_permutation", seed=seed)
        for image, one in zip(IMAGES[:2], found):
            pixels = np.asarray(image)
            (order,) = [o for o in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1),
                                    (2, 1, 0)) if np.array_equal(one, pixels[..., o])]
            orders.add(order)
    assert len(orders) == 6
    assert np.array_equal(run(pack, "random_channel_permutation p=0"),
                          np.stack([np.asarray(image) for image in IMAGES]))


def test_ranges_are_drawn_for_each_image(pack):
    """Every quality of a range occurs, and none outside of it; so it is for other ranges."""
    waves = IMAGES[1]
    seen = set()
    wanted = {np.asarray(reference.jpeg(waves, q)).tobytes(): q for q in (20, 21, 22)}
    for seed in range(20):
        seen.add(wanted[run(pack, "jpeg 20,22", seed=seed)[1].tobytes()])
    assert seen == {20, 21, 22}
    sharp, soft = (run(pack, f"gaussian_blur 23 sigma={s}")[0] for s in (0.1, 2))
    noise = [run(pack, "gaussian_blur 23", seed=seed)[0] for seed in range(4)]
    assert all(soft.std() <= one.std() <= sharp.std() for one in noise)
    assert len({one.tobytes() for one in noise}) == 4
    assert len({run(pack, "adjust_gamma 0.5,2", seed=s)[1].tobytes() for s in range(4)}) == 4


def test_probabilities(pack):
    for name in ("random_invert", "random_posterize 1", "random_solarize 9",
                 "random_adjust_sharpness 9"):
        changed = sum((run(pack, name, seed=seed)[0] != np.asarray(IMAGES[0])).any()
                      for seed in range(24))
        assert 3 <= changed <= 21, name  # one in 40,000 by chance


@pytest.mark.parametrize("text, message", [
    ("gaussian_blur 4", "gaussian_blur: kernel_size: expected odd numbers, found 4"),
    ("gaussian_blur 3,8", "expected odd numbers, found 8"),
    ("gaussian_blur 257", "gaussian_blur: kernel_size: expected 1 to 255, found '257'"),
    ("gaussian_blur 3 sigma=0", "gaussian_blur: sigma: expected 0.01 to 1000, found '0'"),
    ("gaussian_blur 3 sigma=2,1", "gaussian_blur: sigma: expected the lower number first"),
    ("gaussian_blur 3 sigma=1,2,3", "gaussian_blur: sigma: expected 1 or 2 values, found 3"),
    ("jpeg 0", "jpeg: quality: expected 1 to 100, found '0'"),
    ("jpeg 50.5", "jpeg: quality: expected integers, found 50.5"),
    ("random_posterize 9", "random_posterize: bits: expected 0 to 8, found '9'"),
    ("random_posterize", "random_posterize needs bits"),
    ("random_solarize 257", "random_solarize: threshold: expected 0 to 256, found '257'"),
    ("adjust_gamma -1", "adjust_gamma: gamma: expected 0 to 100, found '-1'"),
])
def test_wrong_parameters_are_refused(pack, text, message):
    with pytest.raises(penstock.InvalidError) as error:
        run(pack, text)
    assert message in str(error.value)


def test_channels_need_colors_and_masks_have_none(pack, tmp_path):
    with pytest.raises(penstock.InvalidError, match="random_channel_permutation needs colors"):
        run(pack, "random_channel_permutation", "gray")
    image = IMAGES[0]
    penstock.write(tmp_path / "m.pen", [{"image": encoded(image),
                                         "mask": encoded(image.convert("L"))}],
                   {"image": "image", "mask": "mask"})
    with pytest.raises(penstock.InvalidError, match="random_invert: a mask holds class numbers"):
        penstock.Loader(tmp_path / "m.pen", 1, pipeline={
            "image": "decode | center_crop 8", "mask": "decode | random_invert | center_crop 8"})


def test_a_clip_has_one_draw_for_all_frames_and_a_histogram_for_each(tmp_path):
    with penstock.Writer(tmp_path / "c.pen", {"video": "clip"}) as writer:
        for _ in range(12):
            writer.add(video=[encoded(image) for image in IMAGES[:4]])
    pipeline = f"video: decode | clip 4 1 | center_crop {HEIGHT},{WIDTH} | random_equalize p=1 | "
    loader = penstock.Loader(tmp_path / "c.pen", 12, shuffle=False, output="numpy",
                             pipeline=pipeline + "random_invert | tensor u8")
    plain = np.stack([np.asarray(reference.ImageOps.equalize(image)) for image in IMAGES[:4]])
    clips = next(iter(loader)).video
    kinds = [bool((clip == 255 - plain).all()) for clip in clips]
    assert all(inverted or (clip == plain).all() for inverted, clip in zip(kinds, clips))
    assert 0 < sum(kinds) < 12
