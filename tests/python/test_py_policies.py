# SPDX-License-Identifier: Apache-2.0
"""Policies against Pillow: what is drawn for each sample is computed a second time in
tests/long/_policies.py."""

import io
import pathlib
import sys

import numpy as np
import pytest
from py_tools import need_penstock

penstock = need_penstock()
Image = pytest.importorskip("PIL.Image")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "long"))

import _policies  # noqa: E402
from PIL import ImageFilter, ImageOps  # noqa: E402

WIDTH, HEIGHT, N, SEED = 45, 36, 400, 7
SIZE = (WIDTH, HEIGHT)
# Factors of 1/65536 may round a value otherwise; what follows can enlarge that.
LOOSE = {"Brightness", "Color", "Contrast", "Sharpness"}


def pictures():
    rng = np.random.default_rng(3)
    for _ in range(12):
        small = rng.integers(0, 256, (6, 7, 3), np.uint8)
        noise = rng.integers(0, 30, (HEIGHT, WIDTH, 3))
        smooth = np.asarray(Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC))
        yield np.clip(smooth + noise - 15, 0, 255).astype(np.uint8)


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def images():
    return list(pictures())


@pytest.fixture(scope="module")
def pack(tmp_path_factory, images):
    path = str(tmp_path_factory.mktemp("policies") / "p.pen")
    samples = ({"image": png(images[i % 12]), "i": i} for i in range(N))
    penstock.write(path, samples, {"image": "image", "i": "i64"})
    return path


def results(pack, policy):
    pipeline = f"image: decode | center_crop {HEIGHT},{WIDTH} | {policy} | tensor u8; i: tensor"
    loader = penstock.Loader(pack, 50, pipeline=pipeline, seed=SEED, threads=1)
    for batch in loader:
        for pixels, i in zip(np.asarray(batch.image), np.asarray(batch.i)):
            yield int(i), pixels.transpose(1, 2, 0)


def check(pack, images, policy, found, filter="nearest", fill=(0, 0, 0)):
    """The largest difference of samples without factors, which is none, and of those with."""
    most = n = 0
    for i, pixels in results(pack, policy):
        chain = found(_policies.draw_of(policy.split()[0], SEED, 0, i))
        want = _policies.apply(Image.fromarray(images[i % 12]), chain, filter, fill)
        off = int(np.abs(pixels.astype(int) - np.asarray(want)).max())
        names = {name for name, _ in chain}
        if not names & LOOSE:
            assert off == 0, (i, chain)
            n += 1
        elif len(chain) == 1:
            most = max(most, off)
    assert most <= 1 and n > 20


def test_rand_augment(pack, images):
    check(pack, images, "rand_augment", lambda d: _policies.rand_augment(d, SIZE))
    check(pack, images, "rand_augment 3 magnitude=15 num_magnitude_bins=21 bilinear fill=9,80,255",
          lambda d: _policies.rand_augment(d, SIZE, 3, 15, 21), "bilinear", (9, 80, 255))


def test_trivial_augment(pack, images):
    check(pack, images, "trivial_augment", lambda d: _policies.trivial_augment(d, SIZE))
    check(pack, images, "trivial_augment 11 bicubic fill=77",
          lambda d: _policies.trivial_augment(d, SIZE, 11), "bicubic", (77, 77, 77))


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_auto_augment(pack, images, policy):
    check(pack, images, f"auto_augment {policy}",
          lambda d: _policies.auto_augment(d, SIZE, policy))


@pytest.mark.parametrize("text, given", [
    ("", {}),
    (" severity=10 mixture_width=2 chain_depth=1 alpha=0.3 all_ops=no nearest",
     {"severity": 10, "width": 2, "depth": 1, "alpha": 0.3, "all_ops": False}),
])
def test_aug_mix(pack, images, text, given):
    filter = "nearest" if given else "bilinear"
    most = 0
    for i, pixels in results(pack, f"aug_mix{text}"):
        draw = _policies.draw_of("aug_mix", SEED, 0, i)
        weight, chains = _policies.aug_mix(draw, SIZE, **given)
        want = _policies.apply_mix(Image.fromarray(images[i % 12]), weight, chains, filter)
        off = np.abs(pixels.astype(int) - want)
        exact = not any(name in LOOSE for _, chain in chains for name, _ in chain)
        if exact:
            most = max(most, int(off.max()))
    assert most <= 1  # the weights are rounded to float32


def test_three_augment(pack, images):
    seen = set()
    for i, pixels in results(pack, "three_augment 0"):
        which, sigma, _ = _policies.three_augment(
            _policies.draw_of("three_augment", SEED, 0, i), (1, 1))
        image = Image.fromarray(images[i % 12])
        if which == 2:
            want = image.filter(ImageFilter.GaussianBlur(sigma))
        else:
            want = ImageOps.solarize(image) if which else ImageOps.grayscale(image).convert("RGB")
        off = np.abs(pixels.astype(int) - np.asarray(want))
        assert off.max() <= (1, 0, 24)[which] and off.mean() < (0.1, 0.1, 2.5)[which]
        seen.add(which)
    assert seen == {0, 1, 2}


def test_rand_augment_needs_a_magnitude_of_its_bins(pack):
    with pytest.raises(penstock.InvalidError) as error:
        penstock.Loader(pack, 2, pipeline="decode | rand_augment num_magnitude_bins=5")
    assert str(error.value) == (
        "pipeline: column 10: rand_augment: magnitude: expected at most 4 with "
        "num_magnitude_bins=5, found 9")


def test_policies_need_colors_and_few_steps(pack):
    def fails(policy):
        with pytest.raises(penstock.InvalidError) as error:
            list(results(pack, policy))
        return str(error.value)

    assert "aug_mix: too many operations" in fails("aug_mix mixture_width=8 chain_depth=3")
    assert "rand_augment: too many operations" in fails("rand_augment 16 | rand_augment 16")
    assert "fill has 2 numbers for 3 channels" in fails("rand_augment fill=1,2")
    with pytest.raises(penstock.InvalidError, match="needs colors"):
        penstock.Loader(pack, 2, pipeline="decode gray | center_crop 8 | trivial_augment")


def test_magnitudes_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for end in (0.3, 0.99, 32, 30, 135, 0.9, 150 / 331 * 224, 224 / 3):
        for bins in (2, 7, 10, 11, 21, 31):
            found = [_policies.even(0, end, bins, i) for i in range(bins)]
            assert found == torch.linspace(0.0, end, bins).tolist()
    for bins in (5, 9, 10, 21, 31):
        want = (8 - (torch.arange(bins) / ((bins - 1) / 4)).round().int()).tolist()
        rest = bins, 0, (0, 0), 0, 0, 8, 4
        assert [_policies.magnitude("Posterize", i, *rest) for i in range(bins)] == want


# ---- what follows the image


def scene():
    """Boxes of one class each in a mask that is the image, too."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    boxes = [(4, 5, 16, 17), (20, 8, 34, 20), (10, 20, 30, 32)]
    for value, (x, y, right, below) in enumerate(boxes, 1):
        mask[y:below, x:right] = value
    return mask, np.asarray(boxes, np.float32)


def followed(tmp_path, geometry, colors=""):
    """(image, mask, boxes) of each sample; the image shows the numbers of the mask."""
    path = str(tmp_path / "scene.pen")
    mask, boxes = scene()
    image = png(np.repeat(mask[..., None], 3, 2))
    samples = [{"image": image, "mask": png(mask), "boxes": boxes}] * 200
    penstock.write(path, samples, {"image": "image", "mask": "mask",
                                   "boxes": "f32[*,4] boxes xyxy absolute"})
    size = f"decode | center_crop {HEIGHT},{WIDTH}"
    loader = penstock.Loader(path, 50, threads=1, seed=SEED, output="numpy", pipeline=(
        f"image: {size} | {geometry} {colors} | tensor u8; mask: {size} | {geometry} | tensor u8; "
        "boxes: boxes min_size=0 | ragged"))
    for batch in loader:
        for i in range(50):
            yield batch.image[i][..., 0], batch.mask[i], batch.boxes[i]


@pytest.mark.parametrize("geometry", [
    "random_apply 0.7 [hflip 1 | random_apply [vflip 1]]",
    "random_choice [hflip 1] [vflip 1 | hflip] [random_affine 20 shear=10] p=1,1,2",
    "random_order [hflip | random_rotation 30 | vflip]",
])
def test_masks_and_boxes_follow_compositions(tmp_path, geometry):
    moved = 0
    for image, mask, boxes in followed(tmp_path, geometry):
        assert np.array_equal(image, mask)
        moved += not np.array_equal(mask, scene()[0])
        check_boxes(mask, boxes)
    assert moved > 50


def check_boxes(mask, boxes):
    """Pixels of a class lie in their box, but for half a pixel; boxes are in the order stored if
    none was dropped."""
    if len(boxes) != 3:
        return
    for value, (x, y, right, below) in enumerate(np.asarray(boxes), 1):
        rows, columns = np.nonzero(mask == value)
        if len(rows):
            assert x - 1 <= columns.min() and columns.max() + 1 <= right + 1
            assert y - 1 <= rows.min() and rows.max() + 1 <= below + 1


@pytest.mark.parametrize("policy", ["rand_augment", "trivial_augment", "auto_augment svhn"])
def test_masks_and_boxes_follow_policies(tmp_path, policy):
    """The mask of a sample is its image moved by what was drawn, and colors do not change it."""
    moved = 0
    function = getattr(_policies, policy.split()[0])
    given = {"policy": "svhn"} if "svhn" in policy else {}
    for i, (_, mask, boxes) in enumerate(followed(tmp_path, policy)):
        chain = function(_policies.draw_of(policy.split()[0], SEED, 0, i), SIZE, **given)
        chain = [(name, m) for name, m in chain
                 if name == "Rotate" or name.startswith(("Shear", "Translate"))]
        want = _policies.apply(Image.fromarray(scene()[0]), chain, fill=0)
        assert np.array_equal(mask, np.asarray(want)), chain
        moved += bool(chain)
        check_boxes(mask, boxes)
    assert moved > 30


def test_boxes_do_not_follow_aug_mix(tmp_path):
    for _, mask, boxes in followed(tmp_path, "hflip 0", "| aug_mix severity=10"):
        assert np.array_equal(mask, scene()[0]) and np.array_equal(boxes, scene()[1])


def test_a_clip_has_one_draw_for_all_frames(tmp_path, images):
    """Frames that are equal stay equal, and clips differ."""
    path = tmp_path / "clips.pen"
    with penstock.Writer(path, {"video": "clip"}) as writer:
        for _ in range(30):
            writer.add(video=[png(images[0])] * 4)
    loader = penstock.Loader(path, 30, output="numpy", pipeline=(
        f"video: decode | clip 4 1 | center_crop {HEIGHT},{WIDTH} | random_apply [rand_augment] | "
        "random_choice [trivial_augment] [aug_mix] [three_augment] | tensor u8"))
    clips = next(iter(loader)).video
    assert all((clip == clip[0]).all() for clip in clips)
    assert len({clip.tobytes() for clip in clips}) > 20
