# SPDX-License-Identifier: Apache-2.0
"""What operations on colors have to give: Pillow's results, and published formulas in NumPy."""

import functools
import io

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

UNIT = 65536  # factors are multiples of 1 / UNIT


def rounded(factor):
    return round(factor * UNIT) / UNIT


def adjust_gamma(image, gamma, gain):
    """torchvision's formula for PIL images."""
    table = [int((255 + 1 - 1e-3) * gain * pow(x / 255.0, gamma)) for x in range(256)]
    return image.point(table * len(image.getbands()))


def jpeg(image, quality):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return Image.open(out)


@functools.lru_cache(8)
def _blur_matrix(n, size, sigma):
    """What it makes of n values in a row, mirrored at both ends."""
    x = np.arange(size) - size // 2
    weights = np.exp(-0.5 * (x / sigma) ** 2)
    weights /= weights.sum()
    padded = np.pad(np.eye(n), ((size // 2, size // 2), (0, 0)), mode="reflect")
    return sum(weight * padded[i : i + n] for i, weight in enumerate(weights))


def gaussian_blur(image, height, width, sigma):
    """torchvision's formula in float64, rounded."""
    pixels = np.asarray(image).astype(np.float64)
    down = np.tensordot(_blur_matrix(image.height, height, sigma), pixels, (1, 0))
    across = np.tensordot(_blur_matrix(image.width, width, sigma), down, (1, 1))
    return np.rint(np.moveaxis(across, 0, 1))


def _odd(rng, most):
    return 2 * int(rng.integers(0, most // 2 + 1)) + 1


def _number(rng, low, high):
    return round(float(rng.uniform(low, high)), 4)


def invert(rng):
    return "random_invert p=1", ImageOps.invert


def posterize(rng, bits=None):
    bits = int(rng.integers(0, 9)) if bits is None else bits
    return f"random_posterize {bits} p=1", lambda image: ImageOps.posterize(image, bits)


def solarize(rng, threshold=None):
    threshold = _number(rng, 0, 256) if threshold is None else threshold
    return f"random_solarize {threshold} p=1", lambda image: ImageOps.solarize(image, threshold)


def equalize(rng):
    return "random_equalize p=1", ImageOps.equalize


def autocontrast(rng):
    return "random_autocontrast p=1", ImageOps.autocontrast


def sharpness(rng, factor=None):
    factor = _number(rng, 0, 4) if factor is None else factor
    return (f"random_adjust_sharpness {factor} p=1",
            lambda image: ImageEnhance.Sharpness(image).enhance(rounded(factor)))


def gamma(rng, exponent=None, gain=None):
    exponent = _number(rng, 0, 5) if exponent is None else exponent
    gain = _number(rng, 0.2, 3) if gain is None else gain
    return (f"adjust_gamma {exponent} gain={gain}",
            lambda image: adjust_gamma(image, exponent, gain))


def blur(rng, height=None, width=None, sigma=None):
    height = height or _odd(rng, 101)
    width = width or _odd(rng, 101)
    sigma = sigma or _number(rng, 0.1, 20)
    return (f"gaussian_blur {height},{width} sigma={sigma}",
            lambda image: gaussian_blur(image, height, width, sigma))


def wide_blur(rng, *values):
    """By kernels that may be of more than 101 values."""
    return blur(rng, *values) if values else blur(rng, _odd(rng, 255), _odd(rng, 255),
                                                  _number(rng, 5, 100))


def compression(rng, quality=None):
    quality = int(rng.integers(1, 101)) if quality is None else quality
    return f"jpeg {quality}", lambda image: jpeg(image, quality)


def _enhance(kind, parameter):
    def made(rng, factor=None):
        factor = _number(rng, 0, 3) if factor is None else factor
        return (f"color_jitter {parameter}={factor},{factor}",
                lambda image: kind(image).enhance(rounded(factor)))
    return made


brightness = _enhance(ImageEnhance.Brightness, "brightness")
contrast = _enhance(ImageEnhance.Contrast, "contrast")
saturation = _enhance(ImageEnhance.Color, "saturation")

# Each makes the text of an operation, with random parameters or those it is called with, and what
# does the same to a PIL image. The largest difference allowed.
GRAY_TOO = {invert: 0, posterize: 0, solarize: 0, equalize: 0, autocontrast: 0, sharpness: 0,
            gamma: 0, blur: 1, wide_blur: 2, compression: 0}
EXACT = {**GRAY_TOO, brightness: 0, contrast: 0, saturation: 0}
# Any number of them in a row is one table for each channel.
POINTS = (invert, posterize, solarize, equalize, autocontrast, gamma)

EDGES = [
    (posterize, (0,)), (posterize, (1,)), (posterize, (8,)),
    (solarize, (0,)), (solarize, (1,)), (solarize, (99.5,)), (solarize, (255,)), (solarize, (256,)),
    (sharpness, (0,)), (sharpness, (1,)), (sharpness, (1.9,)), (sharpness, (100,)),
    (gamma, (0, 1)), (gamma, (1, 1)), (gamma, (2.2, 1)), (gamma, (0.45, 1.3)), (gamma, (100, 100)),
    (gamma, (1, 0)), (invert, ()), (equalize, ()), (autocontrast, ()),
    (blur, (1, 1, 5)), (blur, (23, 23, 0.1)), (blur, (23, 23, 2)), (blur, (3, 1, 1)),
    (blur, (5, 9, 1.5)), (blur, (101, 101, 1000)), (blur, (1, 99, 20)),
    (wide_blur, (103, 1, 30)), (wide_blur, (255, 255, 1000)),
    (compression, (1,)), (compression, (75,)), (compression, (100,)),
]


def difference(found, expected):
    """The largest difference of two images, and the share of values that differ."""
    expected = np.asarray(expected)
    found = found.reshape(expected.shape)
    if np.array_equal(found, expected):
        return 0, 0.0
    apart = np.abs(found.astype(np.int16) - expected.astype(np.int16))
    return int(apart.max()), float(np.mean(apart > 0))
