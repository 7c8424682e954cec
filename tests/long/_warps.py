# SPDX-License-Identifier: Apache-2.0
"""Rotations, affine maps, perspectives and pads as torchvision makes them on PIL images, written a
second time: parameters from the draws of a loader (_draws.py), pixels by Pillow and NumPy.

Each call takes a PIL image and a Draw and returns an image and the map of points: a function of
[n, 2] continuous coordinates.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from PIL import Image

FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}  # of Image.Resampling


def pair(value):
    return (-value, value) if isinstance(value, (int, float)) else value


def fill_of(image, fill):
    bands = len(image.getbands())
    return tuple(fill) if bands > 1 and not isinstance(fill, int) else (
        fill if bands == 1 else (fill,) * bands
    )  # fmt: skip


def inverse(matrix, points):
    """Where the points of the input go, for a matrix that maps points of the output to it."""
    full = np.array([*matrix, 1.0] if len(matrix) == 8 else [*matrix, 0, 0, 1]).reshape(3, 3)
    moved = np.c_[points, np.ones(len(points))] @ np.linalg.inv(full).T
    return moved[:, :2] / np.maximum(moved[:, 2:], 1e-6)  # beyond the horizon: far away


def rotation_matrix(angle, center):
    angle = -math.radians(angle % 360.0)
    c, s = round(math.cos(angle), 15), round(math.sin(angle), 15)
    x, y = center
    return [c, s, c * -x + s * -y + x, -s, c, -s * -x + c * -y + y]


def random_rotation(image, draw, degrees, interpolation="nearest", fill=0, center=None):
    angle = draw.uniform(*pair(degrees))
    out = image.rotate(angle, FILTERS[interpolation], center=center,
                       fillcolor=fill_of(image, fill))  # fmt: skip
    matrix = rotation_matrix(angle, center or (image.width / 2, image.height / 2))
    return out, lambda points: inverse(matrix, points)


def affine_matrix(center, angle, translate, scale, shear):
    """torchvision's _get_inverse_affine_matrix."""
    rot, sx, sy = (math.radians(v) for v in (angle, *shear))
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(rot - sy) / math.cos(sy)
    b = -math.cos(rot - sy) * math.tan(sx) / math.cos(sy) - math.sin(rot)
    c = math.sin(rot - sy) / math.cos(sy)
    d = -math.sin(rot - sy) * math.tan(sx) / math.cos(sy) + math.cos(rot)
    m = [v / scale for v in (d, -b, 0.0, -c, a, 0.0)]
    m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty)
    m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty)
    m[2] += cx
    m[5] += cy
    return m


def random_affine(image, draw, degrees, translate=(0, 0), scale=(1, 1), shear=0,
                  interpolation="nearest", fill=0, center=None):  # fmt: skip
    w, h = image.size
    angle = draw.uniform(*pair(degrees))
    shift = [round(draw.uniform(-t * n, t * n)) for t, n in zip(translate, (w, h))]
    factor = draw.uniform(*scale)
    ranges = [*pair(shear), 0, 0][:4]
    slant = draw.uniform(*ranges[:2]), draw.uniform(*ranges[2:])
    m = affine_matrix(center or (w * 0.5, h * 0.5), angle, shift, factor, slant)
    out = image.transform((w, h), Image.Transform.AFFINE, m, FILTERS[interpolation],
                          fillcolor=fill_of(image, fill))  # fmt: skip
    return out, lambda points: inverse(m, points)


def perspective_matrix(start, end):
    """torchvision's _get_perspective_coeffs, whose result is float32, without the rounding errors
    of its least squares. None: there is none, or three
    corners lie on one line."""
    for (ax, ay), (bx, by), (cx, cy) in itertools.combinations(end, 3):
        if (bx - ax) * (cy - ay) == (cx - ax) * (by - ay):
            return None
    rows = []
    for (x, y), (u, v) in zip(end, start):
        rows.append([Fraction(n) for n in (x, y, 1, 0, 0, 0, -u * x, -u * y, u)])
        rows.append([Fraction(n) for n in (0, 0, 0, x, y, 1, -v * x, -v * y, v)])
    for i in range(8):
        pivot = next((k for k in range(i, 8) if rows[k][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [n / rows[i][i] for n in rows[i]]
        for k in range(8):
            if k != i and rows[k][i]:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [float(np.float32(float(row[8]))) for row in rows]


def random_perspective(image, draw, distortion_scale=0.5, p=0.5, interpolation="bilinear", fill=0):
    w, h = image.size
    if not draw.happens(p):
        return image, lambda points: points
    x, y = int(distortion_scale * (w // 2)), int(distortion_scale * (h // 2))
    end = []
    for right, bottom in ((0, 0), (1, 0), (1, 1), (0, 1)):
        dx, dy = draw.below(x + 1), draw.below(y + 1)
        end.append((dx + right * (w - x - 1), dy + bottom * (h - y - 1)))
    start = [(0, 0), (w - 1, 0), (w - 1, h - 1), (0, h - 1)]
    m = perspective_matrix(start, end)
    if m is None:
        return image, lambda points: points
    out = image.transform((w, h), Image.Transform.PERSPECTIVE, m, FILTERS[interpolation],
                          fillcolor=fill_of(image, fill))  # fmt: skip
    return out, lambda points: inverse(m, points)


def pad(image, draw, padding, fill=0, padding_mode="constant"):
    del draw
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = {1: sides * 4, 2: sides * 2, 4: sides}[len(sides)]
    if padding_mode == "constant":
        size = image.width + left + right, image.height + top + bottom
        out = Image.new(image.mode, size, fill_of(image, fill))
        out.paste(image, (left, top))
    else:
        pixels = np.asarray(image)
        borders = ((top, bottom), (left, right), (0, 0))[: pixels.ndim]
        out = Image.fromarray(np.pad(pixels, borders, padding_mode))
    return out, lambda points: points + [left, top]
