# SPDX-License-Identifier: Apache-2.0
"""The operations that are compared: name, and the pipeline between decode and tensor."""

CASES = {
    "invert": "random_invert p=1",
    "posterize": "random_posterize 4 p=1",
    "solarize": "random_solarize 128 p=1",
    "equalize": "random_equalize p=1",
    "autocontrast": "random_autocontrast p=1",
    "brightness": "color_jitter brightness=1.4,1.4",
    "contrast": "color_jitter contrast=1.4,1.4",
    "saturation": "color_jitter saturation=1.4,1.4",
    "hue": "color_jitter hue=0.1,0.1",
    "sharpness": "random_adjust_sharpness 1.4 p=1",
    "gaussian blur 23": "gaussian_blur 23 sigma=0.1,2",
    "rotate nearest": "random_rotation 30",
    "rotate bilinear": "random_rotation 30 interpolation=bilinear",
    "affine nearest": "random_affine 15 shear=10",
    "affine bilinear": "random_affine 15 shear=10 interpolation=bilinear",
    "perspective": "random_perspective 0.5 p=1",
    "random erasing": "random_erasing 1",
    "JPEG 50": "jpeg 50",
    "RandAugment": "rand_augment",
    "TrivialAugment": "trivial_augment",
    "AutoAugment": "auto_augment",
    "AugMix": "aug_mix",
}
