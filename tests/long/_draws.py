# SPDX-License-Identifier: Apache-2.0
"""What a loader draws for a sample, in plain Python: which box, which flip, which factor.

Written a second time on purpose, from the descriptions in src/ops/operations/draw.h and boxes.h: a
number is addressed by (seed, epoch, sample, draw_id of the operation, which one with that draw_id,
number of the draw), and of views also by the name of the view and the number of the repeat.
"""

import math
from typing import NamedTuple

M32 = 2**32 - 1
M64 = 2**64 - 1

# draw_id of each operation on images. They never change.
DRAW_IDS = {
    "decode": 1, "resize": 2, "center_crop": 3, "random_crop": 4, "three_crop": 5,
    "random_resized_crop": 6, "cover": 7, "patches": 8, "hflip": 9, "vflip": 10,
    "random_rotation": 11, "random_affine": 12, "random_perspective": 13, "pad": 14,
    "five_crop": 15, "ten_crop": 16, "color_jitter": 17, "grayscale": 18, "random_invert": 19,
    "random_posterize": 20, "random_solarize": 21, "random_equalize": 22, "random_autocontrast": 23,
    "random_adjust_sharpness": 24, "adjust_gamma": 25, "gaussian_blur": 26,
    "random_channel_permutation": 27, "jpeg": 28, "random_apply": 29, "random_choice": 30,
    "random_order": 31, "rand_augment": 32, "trivial_augment": 33, "auto_augment": 34,
    "aug_mix": 35, "three_augment": 36, "clip": 37, "normalize": 38, "random_erasing": 39,
    "tensor": 40, "repeat": 41, "pad_batch": 42, "mixup": 43, "cutmix": 44,
}


class Box(NamedTuple):
    x: int
    y: int
    w: int
    h: int


def philox(key, counter):
    """Philox4x32-10 of Salmon et al., 2011."""
    k, c = list(key), list(counter)
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [right >> 32 ^ c[1] ^ k[0], right & M32, left >> 32 ^ c[3] ^ k[1], left & M32]
        k = [k[0] + 0x9E3779B9 & M32, k[1] + 0xBB67AE85 & M32]
    return c


def mix(x):
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & M64
    return x ^ x >> 32


def fnv1a_64(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & M64
    return h


class Draw:
    """The numbers of one operation on one sample."""

    def __init__(self, seed, epoch, sample, op, occurrence=0, view=None, repeat=0):
        key = mix(mix(seed + 0x9E3779B97F4A7C15 & M64) ^ (epoch + 0x2545F4914F6CDD1D & M64))
        if view is not None:
            key = mix(key ^ mix((fnv1a_64(view.encode()) | 1) ^ 0x517CC1B727220A95))
        self.key = key & M32, key >> 32
        self.place = [sample & M32, sample >> 32, DRAW_IDS[op] << 16 | occurrence]
        self.n = repeat << 20

    def bits(self):
        x = philox(self.key, [*self.place, self.n])
        self.n += 1
        return x[0] | x[1] << 32

    def uniform(self, low, high):
        return low + (high - low) * ((self.bits() >> 11) / 2**53)

    def below(self, n):
        while True:
            wide = self.bits() * n
            if wide & M64 >= 2**64 % n:
                return wide >> 64

    def happens(self, p):
        return self.uniform(0, 1) < p


def random_crop(draw, width, height, size, padding=0):
    """The box in the image, which may reach into the padding: Box and (height, width) of it."""
    h, w = size
    y = draw.below(height + 2 * padding - h + 1)
    x = draw.below(width + 2 * padding - w + 1)
    return Box(x - padding, y - padding, w, h)


def sides(draw, area, scale, ratio):
    target = area * draw.uniform(*scale)
    aspect = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))


def random_resized_crop(draw, width, height, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
    for _ in range(10):
        w, h = sides(draw, width * height, scale, ratio)
        if 0 < w <= width and 0 < h <= height:
            y = draw.below(height - h + 1)
            x = draw.below(width - w + 1)
            return Box(x, y, w, h)
    w, h = width, height
    if w / h < ratio[0]:
        h = max(1, round(w / ratio[0]))
    elif w / h > ratio[1]:
        w = max(1, round(h * ratio[1]))
    return Box((width - w) // 2, (height - h) // 2, w, h)


def random_erasing(draw, width, height, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3)):
    """The box, or None."""
    if not draw.happens(p):
        return None
    for _ in range(10):
        h, w = sides(draw, width * height, scale, ratio)
        if h < height and w < width:
            y = draw.below(height - h + 1)
            x = draw.below(width - w + 1)
            return Box(x, y, w, h) if w and h else None
    return None


def color_jitter(draw, brightness, contrast, saturation, hue):
    """[(name, factor)] in the order drawn; ranges are (low, high), None leaves a part out."""
    order = [0, 1, 2, 3]
    for i in (3, 2, 1):
        j = draw.below(i + 1)
        order[i], order[j] = order[j], order[i]
    names = ("brightness", "contrast", "saturation", "hue")
    neutral = ((1, 1), (1, 1), (1, 1), (0, 0))
    ranges = (brightness, contrast, saturation, hue)
    factors = [draw.uniform(*(r or n)) for r, n in zip(ranges, neutral)]
    return [(names[i], factors[i]) for i in order if ranges[i] is not None]


def normal(draw):
    while True:
        x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
        s = x * x + y * y
        if 0 < s < 1:
            return x * math.sqrt(-2 * math.log(s) / s)


def large_gamma(draw, shape):
    most = shape - 1 / 3
    c = 1 / math.sqrt(9 * most)
    while True:
        x = normal(draw)
        v = (1 + c * x) ** 3
        u = math.log(1 - draw.uniform(0, 1))
        if v > 0 and u < x * x / 2 + most * (1 - v + math.log(v)):
            return most * v


def log_gamma(draw, shape):
    if shape >= 1:
        return math.log(large_gamma(draw, shape))
    large = math.log(large_gamma(draw, shape + 1))
    return large + math.log(1 - draw.uniform(0, 1)) / shape


def beta(draw, a, b):
    x, y = log_gamma(draw, a), log_gamma(draw, b)
    return 0.0 if y - x >= 700 else 1 / (1 + math.exp(max(y - x, -700)))


def mixing(draw, width, height, mixup=(1, 0), cutmix=(1, 0)):
    """(kind, lambda, box) of a batch or a sample; mixup and cutmix are (alpha, p)."""
    u = draw.uniform(0, 1)
    if u < mixup[1]:
        return "mixup", beta(draw, mixup[0], mixup[0]), None
    if u >= mixup[1] + cutmix[1]:
        return None, 1.0, None
    half = 0.5 * math.sqrt(1 - beta(draw, cutmix[0], cutmix[0]))
    sides = []
    for side in (width, height):
        centre, reach = draw.below(side), int(half * side)
        sides.append((max(centre - reach, 0), min(centre + reach, side)))
    (x, right), (y, below) = sides
    box = Box(x, y, right - x, below - y)
    return "cutmix", 1 - box.w * box.h / (width * height), box
