# SPDX-License-Identifier: Apache-2.0
"""How much an image differs from its original: PSNR, and SSIM (Wang et al., 2004) of the luma."""

from __future__ import annotations

import math
from typing import Any

from ..errors import LabError

Pixels = Any  # a NumPy array of u8: height, width and, unless it is gray, channels
Plane = Any  # a NumPy array of f64: height and width
WINDOW, SIGMA = 11, 1.5
K1, K2, PEAK = 0.01, 0.03, 255.0


def _check(a: Pixels, b: Pixels) -> None:
    if a.shape != b.shape:
        raise LabError(f"cannot compare images: expected one shape, found {a.shape} and {b.shape}")


def mse(a: Pixels, b: Pixels) -> float:
    """The mean squared error of all values."""
    import numpy as np

    _check(a, b)
    return float(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2))


def psnr(error: float) -> float:
    """The peak signal-to-noise ratio of a mean squared error, in dB; inf for 0."""
    return math.inf if error == 0 else 10 * math.log10(PEAK**2 / error)


def luma(pixels: Pixels) -> Plane:
    """Y of BT.601, 0 to 255. Gray images are their own luma."""
    import numpy as np

    if pixels.ndim == 2:
        return pixels.astype(np.float64)
    weights = np.array([0.299, 0.587, 0.114])
    return np.asarray(pixels[..., :3].astype(np.float64) @ weights)


def _filtered(plane: Plane, weights: Any) -> Plane:
    """A separable filter where the window lies inside of the image."""
    import numpy as np

    for axis in (0, 1):
        windows = np.lib.stride_tricks.sliding_window_view(plane, WINDOW, axis)
        plane = windows @ weights
    return plane


def ssim(a: Pixels, b: Pixels) -> float:
    """The mean structural similarity of the luma: a Gaussian window of 11 x 11 with sigma 1.5. An
    image with a side of fewer than 11 pixels is one window, without weights."""
    import numpy as np

    _check(a, b)
    x, y = luma(a), luma(b)
    if min(x.shape) < WINDOW:
        means = [np.mean(plane) for plane in (x, y, x * x, y * y, x * y)]
    else:
        offsets = np.arange(WINDOW) - WINDOW // 2
        weights = np.exp(-(offsets**2) / (2 * SIGMA**2))
        weights /= weights.sum()
        means = [_filtered(plane, weights) for plane in (x, y, x * x, y * y, x * y)]
    mx, my, xx, yy, xy = means
    c1, c2 = (K1 * PEAK) ** 2, (K2 * PEAK) ** 2
    above = (2 * mx * my + c1) * (2 * (xy - mx * my) + c2)
    below = (mx**2 + my**2 + c1) * (xx - mx**2 + yy - my**2 + c2)
    return float(np.mean(above / below))
