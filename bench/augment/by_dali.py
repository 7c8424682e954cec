# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI without a GPU: pipelines of batches with one thread."""

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment

IMAGES_PER_CALL = 16
MAPS = "positions in float32; bilinear blends with the fill at the border"
POLICY = "operations and ranges of DALI, which are not all those of torchvision"
NOTES = {
    "equalize": "OpenCV's formula",
    "autocontrast": "rounds to nearest",
    "contrast": "about 128, not about the mean of the image",
    "hue": "a rotation in YIQ, not in HSV",
    "saturation": "rounds to nearest",
    "sharpness": "a filter of 3 x 3 pixels, also at the border",
    "rotate nearest": MAPS,
    "rotate bilinear": MAPS,
    "affine nearest": MAPS,
    "affine bilinear": MAPS,
    "RandAugment": POLICY,
    "TrivialAugment": POLICY,
    "AutoAugment": POLICY,
}
AFFINE = [1.03, 0.17, -20, -0.26, 0.97, 25]
SHARPEN = augmentations.sharpness_kernel(0.4)


def images(arrays):
    starts = range(0, len(arrays) - IMAGES_PER_CALL + 1, IMAGES_PER_CALL)
    return [list(arrays[at:at + IMAGES_PER_CALL]) for at in starts]


@pipeline_def(batch_size=IMAGES_PER_CALL, num_threads=1, device_id=None, prefetch_queue_depth=1,
              exec_async=False, exec_pipelined=False, enable_conditionals=True)
def _pipeline(operation):
    return operation(fn.external_source(name="images", layout="HWC", no_copy=True))


def _call(operation):
    pipe = _pipeline(operation)
    pipe.build()

    def run(batch):
        pipe.feed_input("images", batch)
        return pipe.run()

    return run


def _solarize(x):
    table = [i if i < 128 else 255 - i for i in range(256)]
    return fn.lookup_table(x, keys=list(range(256)), values=table, dtype=types.UINT8)


def _rotate(interpolation):
    def operation(x):
        angle = fn.random.uniform(range=[-30.0, 30.0])
        return fn.rotate(x, angle=angle, keep_size=True, interp_type=interpolation, fill_value=0)

    return operation


def _affine(interpolation):
    return lambda x: fn.warp_affine(x, matrix=AFFINE, interp_type=interpolation, fill_value=0)


def _erase(x):
    at, size = (fn.random.uniform(range=ends, shape=2) for ends in ([0.0, 0.5], [0.14, 0.57]))
    return fn.erase(x, anchor=at, shape=size, axis_names="HW", normalized=True, fill_value=0)


def cases():
    nearest, linear = types.INTERP_NN, types.INTERP_LINEAR
    alike = {"interp_type": nearest, "fill_value": 0}
    operations = {
        "nothing": lambda x: x,
        "invert": lambda x: types.Constant(255, types.UINT8) - x,
        "posterize": lambda x: x & types.Constant(0xF0, types.UINT8),
        "solarize": _solarize,
        "equalize": fn.equalize,
        "autocontrast": augmentations.auto_contrast,
        "brightness": lambda x: fn.brightness(x, brightness=1.4),
        "contrast": lambda x: fn.contrast(x, contrast=1.4),
        "saturation": lambda x: fn.saturation(x, saturation=1.4),
        "hue": lambda x: fn.hue(x, hue=36),
        "sharpness": lambda x: fn.filter(x, types.Constant(SHARPEN)),
        "gaussian blur 23": lambda x: fn.gaussian_blur(
            x, window_size=23, sigma=fn.random.uniform(range=[0.1, 2.0])),
        "rotate nearest": _rotate(nearest),
        "rotate bilinear": _rotate(linear),
        "affine nearest": _affine(nearest),
        "affine bilinear": _affine(linear),
        "random erasing": _erase,
        "JPEG 50": lambda x: fn.jpeg_compression_distortion(x, quality=50),
        "RandAugment": lambda x: rand_augment.rand_augment(x, 2, 9, **alike),
        "TrivialAugment": lambda x: trivial_augment.trivial_augment_wide(x, **alike),
        "AutoAugment": lambda x: auto_augment.auto_augment(x, "image_net", **alike),
    }
    return {name: _call(operation) for name, operation in operations.items()}
