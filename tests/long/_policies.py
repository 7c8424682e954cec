# SPDX-License-Identifier: Apache-2.0
"""Policies a second time: what they draw, from _draws.py and the published tables, and what that
makes of an image, with Pillow's calls that torchvision makes for PIL images."""

import math

import numpy as np
from _draws import Draw, beta, color_jitter, large_gamma, log_gamma
from PIL import Image, ImageEnhance, ImageOps

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
KINDS = """Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness
    Posterize Solarize AutoContrast Equalize""".split()
MIXED = """ShearX ShearY TranslateX TranslateY Rotate Posterize Solarize AutoContrast Equalize
    Brightness Color Contrast Sharpness""".split()
SIGNED = set(KINDS[1:10])

# Operation, probability and bin of each of the two.
AUTO = {
    "imagenet": """
        Posterize 0.4 8 Rotate 0.6 9
        Solarize 0.6 5 AutoContrast 0.6 -
        Equalize 0.8 - Equalize 0.6 -
        Posterize 0.6 7 Posterize 0.6 6
        Equalize 0.4 - Solarize 0.2 4
        Equalize 0.4 - Rotate 0.8 8
        Solarize 0.6 3 Equalize 0.6 -
        Posterize 0.8 5 Equalize 1.0 -
        Rotate 0.2 3 Solarize 0.6 8
        Equalize 0.6 - Posterize 0.4 6
        Rotate 0.8 8 Color 0.4 0
        Rotate 0.4 9 Equalize 0.6 -
        Equalize 0.0 - Equalize 0.8 -
        Invert 0.6 - Equalize 1.0 -
        Color 0.6 4 Contrast 1.0 8
        Rotate 0.8 8 Color 1.0 2
        Color 0.8 8 Solarize 0.8 7
        Sharpness 0.4 7 Invert 0.6 -
        ShearX 0.6 5 Equalize 1.0 -
        Color 0.4 0 Equalize 0.6 -
        Equalize 0.4 - Solarize 0.2 4
        Solarize 0.6 5 AutoContrast 0.6 -
        Invert 0.6 - Equalize 1.0 -
        Color 0.6 4 Contrast 1.0 8
        Equalize 0.8 - Equalize 0.6 -""",
    "cifar10": """
        Invert 0.1 - Contrast 0.2 6
        Rotate 0.7 2 TranslateX 0.3 9
        Sharpness 0.8 1 Sharpness 0.9 3
        ShearY 0.5 8 TranslateY 0.7 9
        AutoContrast 0.5 - Equalize 0.9 -
        ShearY 0.2 7 Posterize 0.3 7
        Color 0.4 3 Brightness 0.6 7
        Sharpness 0.3 9 Brightness 0.7 9
        Equalize 0.6 - Equalize 0.5 -
        Contrast 0.6 7 Sharpness 0.6 5
        Color 0.7 7 TranslateX 0.5 8
        Equalize 0.3 - AutoContrast 0.4 -
        TranslateY 0.4 3 Sharpness 0.2 6
        Brightness 0.9 6 Color 0.2 8
        Solarize 0.5 2 Invert 0.0 -
        Equalize 0.2 - AutoContrast 0.6 -
        Equalize 0.2 - Equalize 0.6 -
        Color 0.9 9 Equalize 0.6 -
        AutoContrast 0.8 - Solarize 0.2 8
        Brightness 0.1 3 Color 0.7 0
        Solarize 0.4 5 AutoContrast 0.9 -
        TranslateY 0.9 9 TranslateY 0.7 9
        AutoContrast 0.9 - Solarize 0.8 3
        Equalize 0.8 - Invert 0.1 -
        TranslateY 0.7 9 AutoContrast 0.9 -""",
    "svhn": """
        ShearX 0.9 4 Invert 0.2 -
        ShearY 0.9 8 Invert 0.7 -
        Equalize 0.6 - Solarize 0.6 6
        Invert 0.9 - Equalize 0.6 -
        Equalize 0.6 - Rotate 0.9 3
        ShearX 0.9 4 AutoContrast 0.8 -
        ShearY 0.9 8 Invert 0.4 -
        ShearY 0.9 5 Solarize 0.2 6
        Invert 0.9 - AutoContrast 0.8 -
        Equalize 0.6 - Rotate 0.9 3
        ShearX 0.9 4 Solarize 0.3 3
        ShearY 0.8 8 Invert 0.7 -
        Equalize 0.9 - TranslateY 0.6 6
        Invert 0.9 - Equalize 0.6 -
        Contrast 0.3 3 Rotate 0.8 4
        Invert 0.8 - TranslateY 0.0 2
        ShearY 0.7 6 Solarize 0.4 8
        Invert 0.6 - Rotate 0.8 4
        ShearY 0.3 7 TranslateX 0.9 3
        ShearX 0.1 6 Invert 0.6 -
        Solarize 0.7 2 TranslateY 0.6 7
        ShearY 0.8 4 Invert 0.8 -
        ShearX 0.7 9 TranslateY 0.8 3
        ShearY 0.8 5 AutoContrast 0.7 -
        ShearX 0.7 2 Invert 0.1 -""",
}


def even(start, end, n, i):
    """torch.linspace(start, end, n)[i]: in float32 from the nearer end, rounded once."""
    start, end = np.float32(start), np.float32(end)
    step = float((end - start) / np.float32(n - 1))
    if i < n // 2:
        return float(np.float32(float(start) + step * i))
    return float(np.float32(float(end) - step * (n - 1 - i)))


def magnitude(name, bin, bins, shear, translate, rotate, factor, bits, fewer):
    most = {"ShearX": shear, "ShearY": shear, "TranslateX": translate[0],
            "TranslateY": translate[1], "Rotate": rotate, "Brightness": factor, "Color": factor,
            "Contrast": factor, "Sharpness": factor}
    if name in most:
        return even(0, most[name], bins, bin)
    if name == "Posterize":
        return bits - round(float(np.float32(bin) / np.float32((bins - 1) / fewer)))
    return even(255, 0, bins, bin) if name == "Solarize" else 0.0


def spaces(width, height):
    auto = (150 / 331 * width, 150 / 331 * height)
    return {
        "rand": (0.3, auto, 30, 0.9, 8, 4),
        "trivial": (0.99, (32, 32), 135, 0.99, 8, 6),
        "mix": (0.3, (width / 3, height / 3), 30, 0.9, 4, 4),
    }


# ---- what is drawn: lists of (operation, magnitude)


def one(draw, kinds, bins):
    """The operation, one of so many bins (0: none is drawn) and the sign."""
    name = kinds[draw.below(len(kinds))]
    bin = draw.below(bins) if bins else 0
    sign = -1 if draw.below(2) and name in SIGNED else 1
    return name, bin, sign


def rand_augment(draw, size, num_ops=2, level=9, bins=31):
    found = []
    for _ in range(num_ops):
        name, _, sign = one(draw, KINDS, 0)
        found.append((name, sign * magnitude(name, level, bins, *spaces(*size)["rand"])))
    return found


def trivial_augment(draw, size, bins=31):
    name, bin, sign = one(draw, KINDS, bins)
    return [(name, sign * magnitude(name, bin, bins, *spaces(*size)["trivial"]))]


def auto_augment(draw, size, policy="imagenet"):
    row = AUTO[policy].split("\n")[1 + draw.below(25)].split()
    found = []
    for name, p, bin in (row[:3], row[3:]):
        happens = draw.happens(float(p))
        sign = -1 if draw.below(2) == 0 and name in SIGNED else 1
        m = magnitude(name, 0 if bin == "-" else int(bin), 10, *spaces(*size)["rand"])
        if happens:
            found.append((name, sign * m))
    return found


def gamma(draw, alpha):
    return large_gamma(draw, alpha) if alpha >= 1 else math.exp(log_gamma(draw, alpha))


def aug_mix(draw, size, severity=3, width=3, depth=-1, alpha=1.0, all_ops=True):
    """The weight of the image, and (weight, operations) of each chain."""
    share = beta(draw, alpha, alpha)
    weights = [gamma(draw, alpha) for _ in range(width)]
    chains = []
    for weight in weights:
        drawn = 1 + draw.below(3)
        chain = []
        for _ in range(depth if depth > 0 else drawn):
            name, bin, sign = one(draw, MIXED if all_ops else MIXED[:9], severity)
            chain.append((name, sign * magnitude(name, bin, 10, *spaces(*size)["mix"])))
        chains.append((weight / sum(weights) * share, chain))
    return 1 - share, chains


def three_augment(draw, jitter=(0.7, 1.3)):
    which = draw.below(3)
    sigma = draw.uniform(0.1, 2)
    return which, sigma, color_jitter(draw, jitter, jitter, jitter, None)


# ---- with Pillow


def affine_matrix(center, translate, shear):
    """torchvision's _get_inverse_affine_matrix without rotation and scale."""
    sx, sy = (math.radians(angle) for angle in shear)
    a = math.cos(-sy) / math.cos(sy)
    b = -math.cos(-sy) * math.tan(sx) / math.cos(sy)
    c = math.sin(-sy) / math.cos(sy)
    d = -math.sin(-sy) * math.tan(sx) / math.cos(sy) + 1
    matrix = [d, -b, 0.0, -c, a, 0.0]
    x, y = (-center[i] - translate[i] for i in (0, 1))
    matrix[2] += matrix[0] * x + matrix[1] * y + center[0]
    matrix[5] += matrix[3] * x + matrix[4] * y + center[1]
    return matrix


def affine(image, name, value, resample, fill):
    axis = name.endswith("Y")
    translate, shear = [0, 0], [0.0, 0.0]
    center = [0, 0]
    if name.startswith("Shear"):
        shear[axis] = math.degrees(math.atan(value))
    else:
        translate[axis] = int(value)
        center = [image.width * 0.5, image.height * 0.5]
    matrix = affine_matrix(center, translate, shear)
    method = Image.Transform.AFFINE
    return image.transform(image.size, method, matrix, resample, fillcolor=fill)


ENHANCE = {"Brightness": ImageEnhance.Brightness, "Color": ImageEnhance.Color,
           "Contrast": ImageEnhance.Contrast, "Sharpness": ImageEnhance.Sharpness}


def apply_one(image, name, value, resample, fill):
    if name.startswith(("Shear", "Translate")):
        return affine(image, name, value, resample, fill)
    if name == "Rotate":
        return image.rotate(value, resample, fillcolor=fill)
    if name in ENHANCE:
        return ENHANCE[name](image).enhance(1 + value)
    if name == "Posterize":
        return ImageOps.posterize(image, int(value))
    if name == "Solarize":
        return ImageOps.solarize(image, value)
    if name == "Identity":
        return image
    return getattr(ImageOps, name.lower())(image)


def apply(image, found, filter="nearest", fill=(0, 0, 0)):
    for name, value in found:
        image = apply_one(image, name, value, FILTERS[filter], fill)
    return image


def apply_mix(image, weight, chains, filter="bilinear"):
    """In float32, cut off to bytes in the end, as torchvision's AugMix."""
    total = np.float32(weight) * np.asarray(image, np.float32)
    for share, chain in chains:
        pixels = np.asarray(apply(image, chain, filter), np.float32)
        total = total + np.float32(share) * pixels
    return total.astype(np.uint8)


def draw_of(op, seed, epoch, sample):
    return Draw(seed, epoch, sample, op)
