# SPDX-License-Identifier: Apache-2.0
"""albumentations, which works on NumPy arrays with OpenCV."""

import albumentations as a
import cv2

NOTES = {
    "sharpness": "a Laplacian, not Pillow's smoothing",
    "gaussian blur 23": "a kernel of its own",
    "hue": "180 steps of hue",
    "random erasing": "writes a copy of the image",
}


def images(arrays):
    return list(arrays)


def _call(transform):
    return lambda picture: transform(image=picture)["image"]


def cases():
    cv2.setNumThreads(1)
    jitter = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0), "p": 1}
    linear, nearest = cv2.INTER_LINEAR, cv2.INTER_NEAREST
    transforms = {
        "invert": a.InvertImg(p=1),
        "posterize": a.Posterize(4, p=1),
        "solarize": a.Solarize((0.5, 0.5), p=1),
        "equalize": a.Equalize(p=1),
        "autocontrast": a.AutoContrast(p=1),
        "brightness": a.ColorJitter(**jitter | {"brightness": (1.4, 1.4)}),
        "contrast": a.ColorJitter(**jitter | {"contrast": (1.4, 1.4)}),
        "saturation": a.ColorJitter(**jitter | {"saturation": (1.4, 1.4)}),
        "hue": a.ColorJitter(**jitter | {"hue": (0.1, 0.1)}),
        "sharpness": a.Sharpen((0.4, 0.4), p=1),
        "gaussian blur 23": a.GaussianBlur((23, 23), (0.1, 2), p=1),
        "rotate nearest": a.Rotate((-30, 30), interpolation=nearest, p=1),
        "rotate bilinear": a.Rotate((-30, 30), interpolation=linear, p=1),
        "affine nearest": a.Affine(rotate=(-15, 15), shear=(-10, 10), interpolation=nearest, p=1),
        "affine bilinear": a.Affine(rotate=(-15, 15), shear=(-10, 10), interpolation=linear, p=1),
        "perspective": a.Perspective((0.05, 0.25), p=1),
        "random erasing": a.Erasing(p=1),
        "JPEG 50": a.ImageCompression(quality_range=(50, 50), p=1),
    }
    return {name: _call(transform) for name, transform in transforms.items()}
