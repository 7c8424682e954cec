# SPDX-License-Identifier: Apache-2.0
"""The colours of a timeline differ for people with any colour vision.

Each is turned into what people without one of the three kinds of cones see (the matrices of
Machado, Oliveira and Fernandes, 2009), and then into CIE L*a*b*, where a distance of 2.3 is just
noticeable."""

import itertools

import pytest
from py_tools import need_penstock

need_penstock()
from penstock import _timeline_picture  # noqa: E402

EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505], [0.2126, 0.7152, 0.0722],
          [0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089]]
LEAST = 10


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour):
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [((v + 0.055) / 1.055) ** 2.4 if v > 0.04045 else v / 12.92 for v in values]


def lab(colour, eye):
    x, y, z = (max(v, 0.0) for v in times(TO_XYZ, times(EYES[eye], linear(colour))))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(a, b):
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5


@pytest.mark.parametrize("eye", EYES)
def test_spans_of_a_lane_differ(eye):
    colours = {**_timeline_picture.COLOURS, "other": _timeline_picture.colour("other")}
    seen = {name: lab(colour, eye) for name, colour in colours.items()}
    pairs = {(a, b): distance(seen[a], seen[b]) for a, b in itertools.combinations(seen, 2)}
    assert {pair: d for pair, d in pairs.items() if d < LEAST} == {}


def test_distances():
    """Of colours that some cannot tell apart."""
    assert distance(lab("#000000", "all cones"), lab("#ffffff", "all cones")) == pytest.approx(
        100, abs=1)
    assert distance(lab("#c86400", "no green"), lab("#8c8c00", "no green")) < LEAST < distance(
        lab("#c86400", "all cones"), lab("#8c8c00", "all cones"))
