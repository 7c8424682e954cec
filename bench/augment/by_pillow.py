# SPDX-License-Identifier: Apache-2.0
"""Pillow's own calls, with the parameters that torchvision would draw."""

import io
import random

from PIL import Image, ImageEnhance, ImageFilter, ImageOps

NOTES = {"gaussian blur 23": "an approximation by boxes"}


def images(arrays):
    return [Image.fromarray(array) for array in arrays]


def _shear(picture, resample):
    matrix = (1.03, 0.17, -20, -0.26, 0.97, 25)
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample)


def _jpeg(picture):
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=50)
    return Image.open(file).convert("RGB")


def _hue(picture):
    hue, saturation, value = picture.convert("HSV").split()
    hue = hue.point([(i + 25) % 256 for i in range(256)])
    return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


def cases():
    angle = random.Random(0).uniform
    nearest, bilinear = Image.Resampling.NEAREST, Image.Resampling.BILINEAR
    return {
        "invert": ImageOps.invert,
        "posterize": lambda p: ImageOps.posterize(p, 4),
        "solarize": lambda p: ImageOps.solarize(p, 128),
        "equalize": ImageOps.equalize,
        "autocontrast": ImageOps.autocontrast,
        "brightness": lambda p: ImageEnhance.Brightness(p).enhance(1.4),
        "contrast": lambda p: ImageEnhance.Contrast(p).enhance(1.4),
        "saturation": lambda p: ImageEnhance.Color(p).enhance(1.4),
        "hue": _hue,
        "sharpness": lambda p: ImageEnhance.Sharpness(p).enhance(1.4),
        "gaussian blur 23": lambda p: p.filter(ImageFilter.GaussianBlur(angle(0.1, 2))),
        "rotate nearest": lambda p: p.rotate(angle(-30, 30), nearest),
        "rotate bilinear": lambda p: p.rotate(angle(-30, 30), bilinear),
        "affine nearest": lambda p: _shear(p, nearest),
        "affine bilinear": lambda p: _shear(p, bilinear),
        "perspective": lambda p: p.transform(
            p.size, Image.Transform.PERSPECTIVE,
            (1.2, 0.1, -20, 0.05, 1.3, -30, 1e-4, 5e-4), bilinear),
        "JPEG 50": _jpeg,
    }
