# SPDX-License-Identifier: Apache-2.0
"""OpenCV's own calls with one thread, with the parameters that torchvision would draw."""

import random

import cv2
import numpy as np

MAPS = "pixel centers at whole numbers; bilinear blends with the fill at the border"
NOTES = {
    "equalize": "another formula for the table",
    "autocontrast": "rounds to nearest",
    "hue": "180 steps of hue",
    "sharpness": "also changes the pixels at the border",
    "rotate nearest": MAPS,
    "rotate bilinear": MAPS,
    "affine nearest": MAPS,
    "affine bilinear": MAPS,
    "perspective": MAPS,
}
SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
AFFINE = np.float32([[1.03, 0.17, -20], [-0.26, 0.97, 25]])
PERSPECTIVE = np.float32([[1.2, 0.1, -20], [0.05, 1.3, -30], [1e-4, 5e-4, 1]])


def images(arrays):
    return list(arrays)


def _table(function):
    table = np.array([function(i) for i in range(256)], np.uint8)
    return lambda image: cv2.LUT(image, table)


def _each_channel(function):
    return lambda image: cv2.merge([function(channel) for channel in cv2.split(image)])


def _stretch(channel):
    return cv2.normalize(channel, None, 0, 255, cv2.NORM_MINMAX)


def _contrast(image):
    mean = round(cv2.mean(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))[0])
    return cv2.addWeighted(image, 1.4, image, 0, -0.4 * mean)


def _saturation(image):
    gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return cv2.addWeighted(image, 1.4, gray, -0.4, 0)


def _hue():
    turned = _table(lambda i: (i + 18) % 180)

    def apply(image):
        hue, *others = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV))
        return cv2.cvtColor(cv2.merge([turned(hue), *others]), cv2.COLOR_HSV2RGB)

    return apply


def _sharpness(image):
    return cv2.addWeighted(image, 1.4, cv2.filter2D(image, -1, SMOOTH), -0.4, 0)


def _size(image):
    return image.shape[1], image.shape[0]


def _rotate(draw, interpolation):
    def apply(image):
        width, height = _size(image)
        matrix = cv2.getRotationMatrix2D((width / 2, height / 2), draw(-30, 30), 1)
        return cv2.warpAffine(image, matrix, (width, height), flags=interpolation)

    return apply


def _affine(interpolation):
    flags = interpolation | cv2.WARP_INVERSE_MAP
    return lambda image: cv2.warpAffine(image, AFFINE, _size(image), flags=flags)


def _perspective(image):
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpPerspective(image, PERSPECTIVE, _size(image), flags=flags)


def _jpeg(image):
    quality = [cv2.IMWRITE_JPEG_QUALITY, 50]
    _, file = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), quality)
    return cv2.imdecode(file, cv2.IMREAD_COLOR_RGB)


def cases():
    cv2.setNumThreads(1)
    draw = random.Random(0).uniform
    nearest, linear = cv2.INTER_NEAREST, cv2.INTER_LINEAR
    return {
        "invert": cv2.bitwise_not,
        "posterize": _table(lambda i: i & 0xF0),
        "solarize": _table(lambda i: i if i < 128 else 255 - i),
        "equalize": _each_channel(cv2.equalizeHist),
        "autocontrast": _each_channel(_stretch),
        "brightness": lambda image: cv2.convertScaleAbs(image, alpha=1.4),
        "contrast": _contrast,
        "saturation": _saturation,
        "hue": _hue(),
        "sharpness": _sharpness,
        "gaussian blur 23": lambda image: cv2.GaussianBlur(image, (23, 23), draw(0.1, 2)),
        "rotate nearest": _rotate(draw, nearest),
        "rotate bilinear": _rotate(draw, linear),
        "affine nearest": _affine(nearest),
        "affine bilinear": _affine(linear),
        "perspective": _perspective,
        "JPEG 50": _jpeg,
    }
