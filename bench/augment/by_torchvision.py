# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms on Pillow images. Its compiled operators have no build beside this one
of torch; the transforms do not need them, so its package is made without them."""

import importlib.util
import pathlib
import sys
import types

import torch
from PIL import Image


def images(arrays):
    return [Image.fromarray(array) for array in arrays]


def _without_operators():
    spec = importlib.util.find_spec("torchvision")
    package = types.ModuleType("torchvision")
    package.__path__ = [str(pathlib.Path(spec.origin).parent)]
    package.__spec__ = spec
    extension = types.ModuleType("torchvision.extension")
    extension._has_ops = lambda: False
    extension._assert_has_ops = extension._load_library = lambda *_: None
    sys.modules |= {"torchvision": package, "torchvision.extension": extension}
    return importlib.import_module("torchvision.transforms")


def cases():
    torch.set_num_threads(1)
    t = _without_operators()
    bilinear = t.InterpolationMode.BILINEAR
    return {
        "invert": t.RandomInvert(1),
        "posterize": t.RandomPosterize(4, 1),
        "solarize": t.RandomSolarize(128, 1),
        "equalize": t.RandomEqualize(1),
        "autocontrast": t.RandomAutocontrast(1),
        "brightness": t.ColorJitter(brightness=(1.4, 1.4)),
        "contrast": t.ColorJitter(contrast=(1.4, 1.4)),
        "saturation": t.ColorJitter(saturation=(1.4, 1.4)),
        "hue": t.ColorJitter(hue=(0.1, 0.1)),
        "sharpness": t.RandomAdjustSharpness(1.4, 1),
        "gaussian blur 23": t.GaussianBlur(23, (0.1, 2)),
        "rotate nearest": t.RandomRotation(30),
        "rotate bilinear": t.RandomRotation(30, bilinear),
        "affine nearest": t.RandomAffine(15, shear=10),
        "affine bilinear": t.RandomAffine(15, shear=10, interpolation=bilinear),
        "perspective": t.RandomPerspective(0.5, 1),
        "RandAugment": t.RandAugment(),
        "TrivialAugment": t.TrivialAugmentWide(),
        "AutoAugment": t.AutoAugment(),
        "AugMix": t.AugMix(),
    }
