# SPDX-License-Identifier: Apache-2.0
"""Rotations, affine maps, perspectives, pads and crops are those of Pillow and torchvision.

tests/long/long_geometry.py has many images and parameters, tests/long/long_boxes.py boxes and
points of such images."""

import json
import os
import subprocess
import sys

import pytest
from cli_tools import ROOT
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")
from PIL import Image  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "long"))
import _warps  # noqa: E402
from _draws import Draw  # noqa: E402

SIDE, N = 40, 6
COLOR = (9, 200, 31)
CASES = [
    ("random_rotation", {"degrees": 180}),
    ("random_rotation", {"degrees": (90, 90)}),
    ("random_rotation", {"degrees": (270, 270), "interpolation": "bilinear"}),
    ("random_rotation", {"degrees": (180, 180), "interpolation": "bicubic"}),
    ("random_rotation", {"degrees": (30, 30), "interpolation": "bilinear", "fill": COLOR}),
    ("random_rotation", {"degrees": 45, "interpolation": "bicubic", "center": (3.5, 30)}),
    ("random_affine", {"degrees": 0, "translate": (0.5, 0.25)}),
    ("random_affine", {"degrees": 0, "scale": (0.4, 2), "fill": 77}),
    ("random_affine", {"degrees": 0, "scale": (0.001, 0.001)}),
    ("random_affine", {"degrees": 20, "scale": (999, 1000)}),
    ("random_affine", {"degrees": 180, "translate": (0.2, 0.2), "scale": (0.5, 2),
                       "shear": (-30, 30, -20, 20), "fill": COLOR}),
    ("random_affine", {"degrees": 10, "shear": 25, "interpolation": "bilinear", "fill": 1}),
    ("random_affine", {"degrees": 10, "shear": (-5, 60), "interpolation": "bicubic"}),
    ("random_affine", {"degrees": 5, "center": (0, 0), "scale": (0.9, 1.1)}),
    ("random_perspective", {"p": 1}),
    ("random_perspective", {"distortion_scale": 0.9, "p": 1, "interpolation": "nearest"}),
    ("random_perspective", {"distortion_scale": 1, "p": 0.7, "interpolation": "bicubic",
                            "fill": COLOR}),
    ("pad", {"padding": 3, "fill": 7}), ("pad", {"padding": (2, 5), "fill": COLOR}),
    ("pad", {"padding": (1, 2, 3, 4), "padding_mode": "edge"}),
    ("pad", {"padding": (90, 7, 0, 3), "padding_mode": "reflect"}),
    ("pad", {"padding": (7, 90, 81, 0), "padding_mode": "symmetric"}),
]  # fmt: skip


def picture(i):
    """Noise in front of waves, with a flat part; a square, and some that are not."""
    rng = np.random.default_rng(i)
    width, height = [(SIDE, SIDE), (67, 29), (30, 51), (2, 60), (SIDE, SIDE), (91, 3)][i % N]
    y, x = np.mgrid[:height, :width]
    waves = np.dstack([128 + 90 * np.sin(x / 5 + k) * np.cos(y / (3 + k)) for k in range(3)])
    waves += rng.normal(0, 12, waves.shape)
    waves[: height // 3, : width // 2] = 255
    return Image.fromarray(np.clip(waves, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("geometry") / "a.pen"
    rows = ({"image": encoded(picture(i)), "mask": encoded(picture(i).convert("L"))}
            for i in range(N))  # fmt: skip
    penstock.write(path, rows, {"image": "image", "mask": "mask"}, block_samples=2)
    return path


def words(name, options):
    text = ((k, ",".join(map(str, v)) if isinstance(v, tuple) else v) for k, v in options.items())
    return name + "".join(f" {k}={v}" for k, v in text)


def load(pack, pipeline, seed=3):
    """The first field of all samples, as a list."""
    with penstock.Loader(pack, N, pipeline=pipeline, output="numpy", seed=seed, shuffle=False,
                         threads=1, memory="64MiB") as loader:  # fmt: skip
        return list(next(iter(loader))[0])


def centered(pixels, height, width):
    """torchvision's center_crop."""
    out = np.zeros((height, width, *pixels.shape[2:]), np.uint8)
    at = []
    for have, want in zip(pixels.shape, (height, width)):
        first = -((want - have) // 2) if want > have else round((have - want) / 2)
        at.append((max(first, 0), min(first + want, have), max(-first, 0)))
    (y, y_end, top), (x, x_end, left) = at
    out[top : top + y_end - y, left : left + x_end - x] = pixels[y:y_end, x:x_end]
    return out


@pytest.mark.parametrize(("name", "options"), CASES)
def test_pixels_are_those_of_pillow(pack, name, options):
    found = load(pack, f"decode | {words(name, options)} | center_crop 240")
    for i in range(N):
        image, _ = getattr(_warps, name)(picture(i), Draw(3, 0, i, name), **options)
        assert np.array_equal(found[i], centered(np.asarray(image), 240, 240)), i


def test_a_crop_and_flips_behind_a_map_are_part_of_it(pack):
    options = {"degrees": 40, "shear": 10, "interpolation": "bilinear", "fill": COLOR}
    text = words("random_affine", options)
    found = load(pack, f"decode | {text} | hflip 1 | center_crop 20,1 | vflip 1 | center_crop 32")
    for i in range(N):
        image, _ = _warps.random_affine(picture(i), Draw(3, 0, i, "random_affine"), **options)
        pixels = centered(np.asarray(image)[:, ::-1], 20, 1)[::-1]
        assert np.array_equal(found[i], centered(pixels, 32, 32)), i


def test_gray_images_and_masks_follow(pack):
    text = words("random_rotation", {"degrees": 45})
    image = f"decode | {text} | center_crop 99"
    masks = load(pack, f"mask: decode | {text} fill=255 | center_crop 99; image: {image}")
    for i in range(N):
        image, _ = _warps.random_rotation(
            picture(i).convert("L"), Draw(3, 0, i, "random_rotation"), 45, fill=255
        )
        assert np.array_equal(masks[i], centered(np.asarray(image), 99, 99)), i


@pytest.mark.parametrize("flip", ["no", "yes"])
def test_five_and_ten_crops(pack, flip):
    five = load(pack, "decode | resize 48,56 | five_crop 30,20")
    ten = load(pack, f"decode | resize 48,56 | ten_crop 30,20 vertical_flip={flip}")
    whole = load(pack, "decode | resize 48,56")
    for i in range(N):
        flipped = whole[i][::-1] if flip == "yes" else whole[i][:, ::-1]
        for k, image in enumerate((whole[i], flipped)):
            expected = [image[y : y + 30, x : x + 20] for y in (0, 18) for x in (0, 36)]
            expected.append(image[9:39, 18:38])
            assert np.array_equal(ten[i][5 * k : 5 * k + 5], expected)
        assert np.array_equal(five[i], ten[i][:5])
    both = load(pack, "decode | resize 48,56 | random_rotation 90 | five_crop 24 | repeat 3")
    assert both[0].shape == (15, 24, 24, 3)
    assert not np.array_equal(both[0][:5], both[0][5:10])


@pytest.mark.parametrize(("pipeline", "message"), [
    ("decode | random_rotation 3 center=5 | center_crop 8", "center: expected x,y, found 1 number"),
    ("decode | random_rotation 3 fill=1,2 | center_crop 8", "fill has 2 numbers for 3 channels"),
    ("decode | random_rotation 3,1 | center_crop 8", "expected the lower number first"),
    ("decode | random_rotation 3 lanczos | center_crop 8", "lanczos"),
    ("decode | random_affine 3 translate=0.5 | center_crop 8", "translate: expected x,y, found 1"),
    ("decode | random_affine 3 shear=1,2,3 | center_crop 8", "expected 1, 2 or 4 numbers, found 3"),
    ("decode | random_affine 3 shear=-4 | center_crop 8", "shear: expected at least 0"),
    ("decode | random_affine 3 shear=0,1,5,4 | center_crop 8", "expected the lower number first"),
    ("decode | random_affine 3 scale=0,1 | center_crop 8", "scale: expected 0.001 to 1000"),
    ("decode | pad 1,2,3 | center_crop 8", "padding: expected 1, 2 or 4 numbers, found 3"),
    ("decode | pad 1", "the size of the images has no bound"),
    ("decode | five_crop 8 | ten_crop 4", "only one of three_crop, five_crop and ten_crop"),
    ("decode | ten_crop 8 | repeat 7", "repeat: 70 results of one image; at most 64"),
    ("decode | five_crop 8 | resize min_side=4,5 max_side=9", "five_crop needs results"),
    ("decode | five_crop 8 | random_apply [five_crop 8]", "five_crop cannot be inside"),
])  # fmt: skip
def test_errors_name_the_parameter(pack, pipeline, message):
    with pytest.raises(penstock.InvalidError, match=message):
        penstock.Loader(pack, 2, pipeline=pipeline)


def test_errors_of_images(pack):
    with pytest.raises(penstock.Error, match="less than the crop of 50 x 50; add resize before it"):
        load(pack, "decode | five_crop 50")
    with pytest.raises(penstock.Error, match="pad: 16384 x 16384 would become 16385 x 16385"):
        load(pack, "decode | resize 16384,16384 nearest | pad 0,0,1,1 edge | center_crop 8")


def test_padded_results_have_their_size(pack):
    (first, *_) = load(pack, "decode | resize 30,20 | pad 1,2,3,4 | tensor u8 nchw")
    assert first.shape == (3, 36, 24)
    sizes = {p.shape[:2] for p in load(pack, "decode | resize max_side=20 | pad 1,3 edge")}
    assert (26, 22) in sizes and len(sizes) > 2


SCRIPT = """
import json, sys, zlib
sys.path.insert(0, sys.argv[1])
import penstock
names = json.loads(sys.argv[3])
with penstock.Loader(sys.argv[2], 2, pipeline=names, output="numpy", seed=1, threads=1,
                     memory="64MiB") as loader:
    print([zlib.crc32(part) for batch in loader for part in batch])
"""


def test_all_tiers_have_the_same_bytes(pack):
    """A text with all cases as views; what PENSTOCK_CPU names and the CPU lacks is a lower one."""
    views = {f"v{i}": ("image", f"decode | {words(*case)} | center_crop 99")
             for i, case in enumerate(CASES)}  # fmt: skip
    text = "; ".join(f"{name} = {field}: {ops}" for name, (field, ops) in views.items())
    found = set()
    for tier in ("c", "avx2", "avx512"):
        environment = {**os.environ, "PENSTOCK_CPU": tier}
        path = os.path.dirname(os.path.dirname(penstock.__file__))
        command = [sys.executable, "-c", SCRIPT, path, str(pack), json.dumps(text)]
        found.add(subprocess.run(command, env=environment, check=True, capture_output=True,
                                 text=True).stdout)  # fmt: skip
    assert len(found) == 1 and len(found.pop()) > 100


def test_a_map_before_a_resize_is_not_decoded_smaller(tmp_path):
    image = picture(0).resize((640, 480), Image.Resampling.BICUBIC)
    path = tmp_path / "jpeg.pen"
    penstock.write(path, [{"image": encoded(image, "JPEG")}] * N, {"image": "image"})
    for name, changes in (("random_rotation 5,5", False), ("random_affine 0", False),
                          ("random_perspective p=0", False), ("hflip 1", True)):  # fmt: skip
        texts = [f"decode shrink={s} | {name} | resize 40,40" for s in ("off", "auto")]
        assert np.array_equal(*(load(path, text)[0] for text in texts)) != changes, name
        texts = [f"decode shrink={s} | resize 40,40 | {name}" for s in ("off", "auto")]
        assert not np.array_equal(*(load(path, text)[0] for text in texts)), name
