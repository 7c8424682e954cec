# SPDX-License-Identifier: Apache-2.0
"""The loader's pixels against those of others: libjpeg-turbo (by Pillow), torch, NumPy, Pillow.

What was drawn for a sample (box, flip, factor) is computed a second time in _draws.py, so that the
same can be done to the whole image by other means. The pictures are photographs (PENSTOCK_PHOTOS,
or ../shared/data/photos beside the tree) and some made here; without photographs only these.
PENSTOCK_SCALE=full takes all photographs and 20 boxes of each, anything else 30 (or as many as
PENSTOCK_SAMPLE says) and 3. With PENSTOCK_CPU and PENSTOCK_JPEG set all of it holds as well.
"""

import collections
import functools
import hashlib
import io
import itertools
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import _draws
import numpy as np
import torch
from _draws import Draw
from _package import (
    Tests,
    encoded,
    orientation,
    painted,
    penstock,
    photo_files,
    scaled,
    write_pack,
)
from penstock import ops
from PIL import Image, ImageEnhance, ImageOps

BOXES = scaled(20, 2)
PHOTOS = int(os.environ.get("PENSTOCK_SAMPLE") or 30)
CHUNK = 50  # images whose pixels are held at a time
MODES = {"keep": {}, "encode": {"quality": 90, "max_side": 400}}
FILTERS = ("bilinear", "bicubic", "lanczos", "nearest", "box")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

# ---- pictures --------------------------------------------------------------------------------


def made_jpegs(rng):
    """Every sampling, grey, CMYK, progressive, restart markers, odd sizes, all orientations."""
    images = []
    for i, (w, h) in enumerate([(64, 48), (97, 61), (33, 130), (200, 151), (17, 9), (1, 1)]):
        for sampling in (0, 1, 2):
            options = {"quality": (95, 75, 40)[(i + sampling) % 3], "subsampling": sampling}
            images.append(encoded(painted(rng, w, h), "JPEG", **options))
    for more in ({"progressive": True}, {"restart_marker_rows": 1}, {"restart_marker_blocks": 3}):
        images.append(encoded(painted(rng, 145, 99), "JPEG", quality=85, **more))
    images.append(encoded(painted(rng, 121, 87)[..., 0], "JPEG", quality=90))
    images.append(encoded(painted(rng, 40, 300)[..., 1], "JPEG", progressive=True))
    images.append(encoded(Image.fromarray(painted(rng, 80, 57)).convert("CMYK"), "JPEG"))
    for n in range(1, 9):
        exif = orientation(n)
        images.append(encoded(painted(rng, 90 + n, 71), "JPEG", quality=90, exif=exif))
    return images


def made_others(rng):
    """PNG and WebP of every kind that is not just RGB."""
    rgb = Image.fromarray(painted(rng, 73, 52))
    kinds = [rgb.convert(mode) for mode in ("RGB", "L", "1", "LA", "RGBA", "P")]
    kinds[3].putalpha(kinds[1])
    kinds[4].putalpha(kinds[1])
    images = [encoded(image) for image in kinds]
    images.append(encoded(rgb, "WEBP", lossless=True))
    images.append(encoded(rgb, "WEBP", quality=80))
    images.append(encoded(kinds[4], "WEBP", lossless=True, exact=True))
    return images


def upright(data):
    """What a viewer shows, as RGB pixels."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


class Pictures:
    """Images, packed in every mode."""

    def __init__(self, work, name, images):
        self.name, self.images, self.packs = name, images, {}
        for mode, settings in MODES.items():
            path = work / f"{name}-{mode}.pen"
            self.packs[mode] = write_pack(path, images, mode=mode, **settings)

    def __len__(self):
        return len(self.images)

    @functools.lru_cache(maxsize=3 * CHUNK)  # noqa: B019
    def pixels(self, mode, number):
        """All of them; where the mode keeps the image, those of the source itself."""
        if mode == "encode":
            return upright(self.packs[mode].extract(number, "image"))
        return upright(self.images[number])

    def chunks(self):
        for first in range(0, len(self), CHUNK):
            yield range(first, min(first + CHUNK, len(self)))


def open_pictures(work):
    rng = np.random.default_rng(1)
    sets = [Pictures(work, "made", made_jpegs(rng) + made_others(rng))]
    files = photo_files(PHOTOS)
    if files:
        sets.append(Pictures(work, "photos", [file.read_bytes() for file in files]))
    return sets


# ---- what the loader gives, and what was drawn -------------------------------------------------


def load(pack, pipeline, numbers, seed, epoch, **settings):
    """(sample number, its item of each field) of these samples in this epoch."""
    settings.setdefault("output", "numpy")
    with penstock.Loader(
        pack, min(16, len(numbers)), pipeline=pipeline, seed=seed, order="random",
        subset=list(numbers), return_info=True, **settings,
    ) as loader:
        loader.set_epoch(epoch)
        for *fields, info in loader:
            for i, (number, valid) in enumerate(zip(info.samples, info.valid)):
                if valid:
                    yield int(number), *[field[i] for field in fields]


def cut(pixels, box):
    return pixels[box.y : box.y + box.h, box.x : box.x + box.w]


def flipped(pixels, seed, epoch, number):
    """By `hflip | vflip`."""
    if Draw(seed, epoch, number, "hflip").happens(0.5):
        pixels = pixels[:, ::-1]
    if Draw(seed, epoch, number, "vflip").happens(0.5):
        pixels = pixels[::-1]
    return pixels


def resized(pixels, size, kind):
    if pixels.shape[:2] == tuple(size):
        return pixels
    if kind == "box":
        return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BOX))
    x = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None]
    smooth = kind != "nearest"
    y = torch.nn.functional.interpolate(x, list(size), mode=kind, antialias=smooth)
    return y[0].permute(1, 2, 0).numpy()


class Difference:
    """Counts what differs, and remembers the first."""

    def __init__(self):
        self.images = self.values = self.unequal = self.most = 0
        self.first = None

    def add(self, expected, found, what):
        assert expected.shape == found.shape, f"{what}: {found.shape}, expected {expected.shape}"
        by = np.abs(expected.astype(np.int16) - found.astype(np.int16))
        most = int(by.max())
        self.images += 1
        self.values += by.size
        self.unequal += int(np.count_nonzero(by))
        self.most = max(self.most, most)
        if most and self.first is None:
            self.first = what

    def check(self, allowed):
        assert self.images, "nothing was compared"
        text = f"{self.images} crops, {self.unequal} of {self.values} bytes differ"
        if self.most:
            text += f", by {self.most} at the most"
        assert self.most <= allowed, f"{text}, the first: {self.first}"
        return text


# ---- geometry ----------------------------------------------------------------------------------


def by_size(pictures, mode, numbers):
    """Numbers of the samples of each size."""
    groups = collections.defaultdict(list)
    for number in numbers:
        groups[pictures.pixels(mode, number).shape[:2]].append(number)
    return groups.items()


def decoded_crops(pictures, mode):
    """random_crop of every size, now and then into the padding: nothing is resampled."""
    rng, diff = random.Random(2), Difference()
    for chunk in pictures.chunks():
        for shape, numbers in by_size(pictures, mode, chunk):
            for epoch in range(BOXES):
                crop_once(pictures, mode, shape, numbers, epoch, rng, diff)
    return diff.check(0)


def crop_once(pictures, mode, shape, numbers, epoch, rng, diff):
    size, seed = [rng.randint(1, side) for side in shape], rng.getrandbits(64)
    padding, fill = (rng.randint(1, 9), rng.randint(0, 255)) if epoch % 4 == 2 else (0, 0)
    pipeline = f"decode | random_crop {size[0]},{size[1]} padding={padding} fill={fill}"
    for number, found, _ in load(pictures.packs[mode], pipeline, numbers, seed, epoch):
        pixels = pictures.pixels(mode, number)
        draw = Draw(seed, epoch, number, "random_crop")
        box = _draws.random_crop(draw, shape[1], shape[0], size, padding)
        if padding:
            around = ((padding, padding), (padding, padding), (0, 0))
            pixels = np.pad(pixels, around, constant_values=fill)
            box = box._replace(x=box.x + padding, y=box.y + padding)
        diff.add(cut(pixels, box), found, f"{mode} {number} of epoch {epoch}: {box}")


def some_size(rng, epoch):
    return (224, 224) if epoch % 2 == 0 else (rng.randint(1, 300), rng.randint(1, 300))


def resampled(pictures, kind):
    """random_resized_crop and flips, the modes in turn."""
    rng, diff = random.Random(3), Difference()
    for chunk in pictures.chunks():
        for epoch in range(BOXES):
            mode = list(MODES)[epoch % len(MODES)]
            size, seed = some_size(rng, epoch), rng.getrandbits(64)
            pipeline = [
                ops.decode(), ops.random_resized_crop(size, filter=kind), ops.hflip(), ops.vflip(),
            ]
            for number, found, _ in load(pictures.packs[mode], pipeline, chunk, seed, epoch):
                pixels = pictures.pixels(mode, number)
                draw = Draw(seed, epoch, number, "random_resized_crop")
                box = _draws.random_resized_crop(draw, pixels.shape[1], pixels.shape[0])
                expected = flipped(resized(cut(pixels, box), size, kind), seed, epoch, number)
                diff.add(expected, found, f"{mode} {number} of epoch {epoch}: {box} to {size}")
    return diff.check(1 if kind == "box" else 0)


def box_in_the_middle(work):
    """Means that lie in the very middle between two values, along both axes."""
    diff = Difference()
    for k in range(2, scaled(130, 50), 2):
        step = (np.arange(4 * k) % k >= k // 2).astype(np.uint8)
        pixels = np.dstack([10 + step[:, None] + step[None]] * 3)
        pack = write_pack(work / f"middle-{k}.pen", [encoded(pixels)])
        (_, found, _), = load(pack, "decode | resize 4,4 box", [0], 0, 0)
        diff.add(resized(pixels, (4, 4), "box"), found, f"{k} x {k} pixels")
    return diff.check(1)


def short_side(pixels, size):
    h, w = pixels.shape[:2]
    return (size, int(size * w / h)) if h <= w else (int(size * h / w), size)


def evaluation(pictures, mode):
    """`resize 256 | center_crop 224`, as everybody measures accuracy."""
    diff = Difference()
    for kind in ("bilinear", "bicubic"):
        pipeline = f"decode | resize 256 {kind} | center_crop 224"
        for chunk in pictures.chunks():
            for number, found, _ in load(pictures.packs[mode], pipeline, chunk, 0, 0):
                pixels = pictures.pixels(mode, number)
                whole = resized(pixels, short_side(pixels, 256), kind)
                y, x = (round((side - 224) / 2) for side in whole.shape[:2])
                diff.add(whole[y : y + 224, x : x + 224], found, f"{mode} {number}, {kind}")
    return diff.check(0)


# ---- values ------------------------------------------------------------------------------------

GEOMETRY = "decode | random_resized_crop 64,80 | hflip"


def as_planes(pixels):
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0))


def normalized(pixels):
    """As torchvision: ToTensor, then Normalize."""
    unit = pixels.astype(np.float32) / np.float32(255)
    return (unit - np.float32(MEAN)) / np.float32(STD)


def values(pictures, seed=5):
    """All types and both layouts, bit for bit from the bytes of u8."""
    pack, numbers = pictures.packs["keep"], range(len(pictures))
    base = {n: pixels for n, pixels, _ in load(pack, GEOMETRY, numbers, seed, 1)}
    kinds = {"u8": torch.uint8, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    n = 0
    for norm in ("", " | normalize"):
        for kind, dtype in kinds.items():
            for layout in ("nhwc", "nchw"):
                if norm and kind == "u8":
                    continue
                pipeline = f"{GEOMETRY}{norm} | tensor {kind} {layout}"
                for number, found, _ in load(pack, pipeline, numbers, seed, 1, output="torch"):
                    pixels = base[number]
                    unit = pixels.astype(np.float32) / np.float32(255)
                    exact = pixels if kind == "u8" else normalized(pixels) if norm else unit
                    expected = torch.from_numpy(as_planes(exact)).to(dtype)
                    assert found.dtype == dtype and found.shape == expected.shape
                    assert is_equal(expected, found), f"{pipeline}: sample {number}"
                    n += found.numel()
    return f"{n} values bit-equal in 14 forms"


def is_equal(a, b):
    """Bit for bit: -0 is not 0."""
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[a.element_size()]
    return torch.equal(a.contiguous().view(size), b.contiguous().view(size))


def all_values(work):
    """Every byte in every channel, and uncommon means and deviations."""
    pixels = np.stack([np.arange(256).reshape(16, 16) + c * 85 for c in range(3)], -1)
    pack = write_pack(work / "values.pen", [encoded(pixels.astype(np.uint8))])
    rng, n = random.Random(4), 0
    for _ in range(scaled(400, 40)):
        mean = [rng.uniform(-2, 2) for _ in range(3)]
        std = [10 ** rng.uniform(-3, 3) for _ in range(3)]
        unit = pixels.astype(np.uint8).astype(np.float32) / np.float32(255)
        exact = torch.from_numpy((unit - np.float32(mean)) / np.float32(std))
        for kind, dtype in (
            ("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16),
        ):
            pipeline = [ops.decode(), ops.center_crop(16), ops.normalize(mean, std)]
            pipeline.append(ops.tensor(kind))
            (_, found, _), = load(pack, pipeline, [0], 0, 0, output="torch")
            expected = exact.to(dtype).permute(2, 0, 1)
            assert is_equal(expected, found), f"mean {mean}, std {std}, {kind}"
            n += found.numel()
    return f"{n} values bit-equal"


# ---- colours -----------------------------------------------------------------------------------

RANGES = {
    "brightness": (0.2, 1.9), "contrast": (0.2, 1.9), "saturation": (0, 2), "hue": (-0.5, 0.5),
}
ENHANCE = {
    "brightness": ImageEnhance.Brightness,
    "contrast": ImageEnhance.Contrast,
    "saturation": ImageEnhance.Color,
}


def recoloured(pixels, part, factor):
    """As torchvision on images of Pillow."""
    image = Image.fromarray(pixels)
    if part in ENHANCE:
        return np.asarray(ENHANCE[part](image).enhance(factor))
    h, s, v = image.convert("HSV").split()
    turned = np.asarray(h) + np.uint8(int(factor * 255) % 256)
    return np.asarray(Image.merge("HSV", (Image.fromarray(turned), s, v)).convert("RGB"))


def colours(pictures, parts):
    """Each by itself within 2; several in the order drawn within what they make of 2."""
    diff, far, order = Difference(), 0, collections.Counter()
    given = {part: RANGES[part] for part in parts}
    for epoch in range(BOXES):
        pack, numbers, seed = pictures.packs["keep"], range(len(pictures)), 600 + epoch
        base = {n: pixels for n, pixels, _ in load(pack, GEOMETRY, numbers, seed, epoch)}
        text = " ".join(f"{part}={low},{high}" for part, (low, high) in given.items())
        pipeline = f"{GEOMETRY} | color_jitter {text}"
        for number, found, _ in load(pack, pipeline, numbers, seed, epoch):
            draw = Draw(seed, epoch, number, "color_jitter")
            drawn = _draws.color_jitter(draw, *[given.get(part) for part in RANGES])
            expected = base[number]
            for part, factor in drawn:
                expected = recoloured(expected, part, factor)
            order[tuple(part for part, _ in drawn)] += 1
            diff.add(expected, found, f"{number} of epoch {epoch}: {drawn}")
            far += int(np.count_nonzero(np.abs(expected.astype(int) - found) > 2))
    if len(parts) == 1:
        return diff.check(2)
    assert far <= diff.values / 1000, f"{far} of {diff.values} bytes differ by more than 2"
    assert len(order) == math.factorial(len(parts)) or diff.images < 100, order
    return f"{diff.check(255)}, {far} by more than 2, in {len(order)} orders"


def grey(pictures):
    """grayscale, and decode gray: what Pillow's "L" says."""
    diff, pack, numbers = Difference(), pictures.packs["keep"], range(len(pictures))
    base = {n: pixels for n, pixels, _ in load(pack, GEOMETRY, numbers, 7, 0)}
    for number, found, _ in load(pack, GEOMETRY + " | grayscale", numbers, 7, 0):
        one = np.asarray(Image.fromarray(base[number]).convert("L"))
        diff.add(np.dstack([one] * 3), found, f"grayscale {number}")
    for number, found, _ in load(pack, "decode gray | resize 31,45 nearest", numbers, 7, 0):
        one = np.asarray(Image.fromarray(pictures.pixels("keep", number)).convert("L"))
        diff.add(resized(one[..., None], (31, 45), "nearest"), found, f"decode gray {number}")
    return diff.check(0)


def erased(pictures):
    """random_erasing, on pixels and on the result."""
    diff, pack, numbers, n = Difference(), pictures.packs["keep"], range(len(pictures)), 0
    for epoch in range(BOXES):
        base = {n: pixels for n, pixels, _ in load(pack, GEOMETRY, numbers, 8, epoch)}
        boxes = {
            i: _draws.random_erasing(Draw(8, epoch, i, "random_erasing"), 80, 64, 0.9) for i in base
        }
        pipeline = GEOMETRY + " | random_erasing 0.9 value=9,8,7"
        for number, found, _ in load(pack, pipeline, numbers, 8, epoch):
            expected = base[number].copy()
            if boxes[number]:
                cut(expected, boxes[number])[:] = (9, 8, 7)
                n += 1
            diff.add(expected, found, f"{number} of epoch {epoch}: {boxes[number]}")
        pipeline = GEOMETRY + " | normalize | random_erasing 0.9 value=-1.5 | tensor f32"
        for number, found, _ in load(pack, pipeline, numbers, 8, epoch):
            expected = normalized(base[number])
            if boxes[number]:
                cut(expected, boxes[number])[:] = -1.5
            assert np.array_equal(expected, found), f"{number} of epoch {epoch}: {boxes[number]}"
    return f"{diff.check(0)}, {n} boxes"


# ---- boxes -------------------------------------------------------------------------------------


def places(width, height):
    """An image whose pixels tell where they are."""
    y, x = np.mgrid[:height, :width]
    high = (x >> 8) | (y >> 8) << 4
    return np.dstack([x & 255, y & 255, high]).astype(np.uint8)


def seen_box(pixels):
    """The box that was cut out of `places` and enlarged: its first and last pixel."""
    first, last = pixels[0, 0].astype(int), pixels[-1, -1].astype(int)
    x, y = first[0] | (first[2] & 15) << 8, first[1] | first[2] >> 4 << 8
    right, bottom = last[0] | (last[2] & 15) << 8, last[1] | last[2] >> 4 << 8
    return _draws.Box(int(x), int(y), int(right - x + 1), int(bottom - y + 1))


def published_crop(rng, width, height, scale, ratio):
    """torchvision.transforms.RandomResizedCrop.get_params, with another generator."""
    for _ in range(10):
        area = width * height * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
        if 0 < w <= width and 0 < h <= height:
            return _draws.Box(rng.randint(0, width - w), rng.randint(0, height - h), w, h)
    in_ratio = width / height
    w, h = width, height
    if in_ratio < min(ratio):
        h = int(round(w / min(ratio)))
    elif in_ratio > max(ratio):
        w = int(round(h * max(ratio)))
    return _draws.Box((width - w) // 2, (height - h) // 2, w, h)


def same_origin(a, b):
    """The two-sample Kolmogorov-Smirnov test: how likely it is that they differ by so much."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    by = np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)
    far = np.abs(by).max()
    n = len(a) * len(b) / (len(a) + len(b))
    t = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * far
    if t < 0.2:
        return 1.0
    return min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * t * t) for k in range(1, 101)))


CROPS = [  # width, height, scale, ratio
    (150, 120, (0.08, 1.0), (3 / 4, 4 / 3)),
    (70, 130, (0.08, 1.0), (3 / 4, 4 / 3)),
    (300, 40, (0.3, 1.0), (3 / 4, 4 / 3)),  # mostly the centre
    (90, 90, (0.01, 0.4), (0.3, 3.3)),
]


def crop_boxes(work, width, height, scale, ratio):
    """What the loader cuts out, seen in the pixels, against torchvision's rule and _draws.py."""
    n, copies = scaled(20_000, 1_500), 100
    data = encoded(places(width, height))
    pack = write_pack(work / f"places-{width}.pen", [data] * copies)
    side = max(width, height)
    crop = ops.random_resized_crop(side, scale=scale, ratio=ratio, filter="nearest")
    boxes = []
    for epoch in range(n // copies):
        for number, found, _ in load(pack, [ops.decode(), crop], range(copies), 9, epoch):
            box = seen_box(found)
            draw = Draw(9, epoch, number, "random_resized_crop")
            expected = _draws.random_resized_crop(draw, width, height, scale, ratio)
            assert box == expected, f"{number} of epoch {epoch}: {box}, expected {expected}"
            boxes.append(box)
    rng = random.Random(10)
    theirs = [published_crop(rng, width, height, scale, ratio) for _ in range(n)]
    ours, theirs = np.array(boxes, float), np.array(theirs, float)
    worst = 1.0
    for of in (lambda b: b[:, 0], lambda b: b[:, 1], lambda b: b[:, 2], lambda b: b[:, 3],
               lambda b: b[:, 2] * b[:, 3], lambda b: b[:, 2] / b[:, 3]):
        worst = min(worst, same_origin(of(ours), of(theirs)))
    assert worst > 0.001, f"p = {worst:.6f} for {n} boxes"
    return f"{n} boxes, the least p of x, y, w, h, area and ratio is {worst:.3f}"


def test_of_the_test():
    """The same test tells other areas and other ratios apart."""
    rng, n = random.Random(11), scaled(20_000, 1_500)
    rules = [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.1, 0.8), (3 / 4, 4 / 3)), ((0.08, 1.0), (0.8, 1.3))]
    right, *wrong = [[published_crop(rng, 150, 120, *rule) for _ in range(n)] for rule in rules]
    area, ratio = (lambda b: b.w * b.h), (lambda b: b.w / b.h)
    likely = [
        same_origin(np.array([of(b) for b in right]), np.array([of(b) for b in boxes]))
        for of, boxes in zip((area, ratio), wrong)
    ]
    assert max(likely) < 0.001, likely
    return f"p = {likely[0]:.1e} for other areas, {likely[1]:.1e} for other ratios"


# ---- masks, orientations, tiers ----------------------------------------------------------------


def masks(work):
    """A mask shows the same places as its image, whatever the image's filter."""
    schema, sizes = {"image": "image", "mask": "mask"}, [(200, 150), (90, 230), (64, 64)]
    with penstock.Writer(work / "masks.pen", schema) as writer:
        for n, (w, h) in enumerate(sizes * 4):
            pixels = places(w, h)
            writer.add(str(n), image=encoded(pixels), mask=encoded(pixels[..., n % 2]))
    pack, n = penstock.open(work / "masks.pen"), 0
    for kind in FILTERS:
        geometry = f"decode | random_resized_crop 61,77 {kind} | hflip | vflip | random_crop 50"
        pipeline = {"image": geometry, "mask": geometry + " | tensor i64"}
        for epoch in range(BOXES):
            for number, image, mask in load(pack, pipeline, range(len(pack)), 12, epoch):
                n += 1
                assert mask.shape == (50, 50)
                w, h = sizes[number % 3]
                pixels = places(w, h)[..., number % 2]
                box = _draws.random_resized_crop(
                    Draw(12, epoch, number, "random_resized_crop"), w, h
                )
                part = resized(cut(pixels, box)[..., None], (61, 77), "nearest")
                part = flipped(part, 12, epoch, number)
                box = _draws.random_crop(Draw(12, epoch, number, "random_crop"), 77, 61, (50, 50))
                assert np.array_equal(cut(part, box)[..., 0], mask), f"{number}: another place"
                if kind == "nearest":
                    assert np.array_equal(image[..., number % 2], mask), f"{number}: another place"
    return f"{n} masks equal"


def orientations(work):
    """EXIF's eight, in JPEGs of every sampling and in all modes, against Pillow's view."""
    rng, diff = np.random.default_rng(13), Difference()
    for sampling in (0, 1, 2):
        images = [
            encoded(painted(rng, 75, 54), "JPEG", subsampling=sampling, exif=orientation(n))
            for n in range(1, 9)
        ]
        pictures = Pictures(work, f"turned-{sampling}", images)
        for mode in MODES:
            for epoch in range(BOXES):
                for shape, numbers in by_size(pictures, mode, range(8)):
                    crop_once(pictures, mode, shape, numbers, epoch, random.Random(epoch), diff)
    return diff.check(0)


PIPELINES = [
    *[f"decode | random_resized_crop 96,80 {kind} | hflip" for kind in FILTERS],
    "decode | resize 130 bicubic | center_crop 112 | tensor u8 nchw",
    GEOMETRY + " | normalize | tensor f32 nchw",
    GEOMETRY + " | normalize | tensor f16 nhwc",
    GEOMETRY + " | normalize | tensor bf16 nchw",
    GEOMETRY + " | color_jitter 0.4 0.4 0.4 0.2 | grayscale 0.2 | random_erasing | tensor f16 nchw",
    "decode gray | random_resized_crop 63,65 lanczos | tensor f32",
]


def print_digests(packs):
    for path in packs:
        pack, digest = penstock.open(path), hashlib.sha256()
        for pipeline in PIPELINES:
            found = load(pack, pipeline, range(len(pack)), 14, 2, output="torch")
            for number, pixels, _ in sorted(found, key=lambda item: item[0]):
                digest.update(f"{number} {tuple(pixels.shape)}".encode())
                raw = pixels.contiguous().view(torch.uint8) if pixels.element_size() > 1 else pixels
                digest.update(raw.contiguous().numpy().tobytes())
        print(pathlib.Path(path).name, digest.hexdigest())


def tiers(sets):
    """Every tier with the own decoder and without it; "" is the best there is."""
    packs = [str(pictures.packs["keep"].path) for pictures in sets]
    texts = {}
    for tier, decoder in itertools.product(("", "c", "avx2", "avx512"), ("own", "turbo")):
        env = {**os.environ, "PENSTOCK_CPU": tier, "PENSTOCK_JPEG": decoder}
        done = subprocess.run(
            [sys.executable, __file__, "--digests", *packs], env=env, capture_output=True,
            text=True, check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) == 2 * len(packs)
        texts[tier or "best", decoder] = done.stdout
    assert len(set(texts.values())) == 1, texts
    n = sum(len(pictures) for pictures in sets) * len(PIPELINES)
    return f"{n} results each in {len(texts)} runs, one digest {done.stdout.split()[1][:16]}"


# ---- all of it ---------------------------------------------------------------------------------


def main():
    tests = Tests("exact")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="penstock-") as work:
        work = pathlib.Path(work)
        sets = open_pictures(work)
        for pictures in sets:
            name, n = pictures.name, len(pictures)
            print(f"exact: {name}: {n} images, {BOXES} boxes each", flush=True)
            for mode in MODES:
                tests.run(f"{name}: {mode}: decoded crops", decoded_crops, pictures, mode)
                tests.run(f"{name}: {mode}: resize and centre", evaluation, pictures, mode)
            for kind in FILTERS:
                tests.run(f"{name}: {kind}", resampled, pictures, kind)
            tests.run(f"{name}: types and layouts", values, pictures)
            for part in RANGES:
                tests.run(f"{name}: {part}", colours, pictures, [part])
            tests.run(f"{name}: two colours", colours, pictures, ["brightness", "saturation"])
            tests.run(f"{name}: grey", grey, pictures)
            tests.run(f"{name}: erasing", erased, pictures)
        tests.run("box in the middle", box_in_the_middle, work)
        tests.run("every value normalized", all_values, work)
        for crop in CROPS:
            tests.run(f"boxes in {crop[0]} x {crop[1]}", crop_boxes, work, *crop)
        tests.run("boxes of another rule", test_of_the_test)
        tests.run("masks", masks, work)
        tests.run("orientations", orientations, work)
        if not {"PENSTOCK_CPU", "PENSTOCK_JPEG"} & os.environ.keys():
            tests.run("tiers", tiers, sets)
    if len(sets) == 1:
        print("exact: photos: none found; set PENSTOCK_PHOTOS")
    return tests.end(skipped=int(len(sets) == 1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--digests"]:
        sys.exit(print_digests(sys.argv[2:]))
    sys.exit(main())
