# SPDX-License-Identifier: Apache-2.0
# Made by tests/python/ops_stub.py from the library's table of operations; do not edit.
from collections.abc import Sequence
from typing import Literal

from ._pipeline import Op as Op

def decode(
    mode: Literal["rgb", "gray"] = "rgb",
) -> Op:
    """read the image; comes first

    mode  channels; masks have one whatever it says (rgb, gray)
    """

def resize(
    size: int | Sequence[int],
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
) -> Op:
    """resize, antialiased

    size    the shorter side; or height,width exactly
    filter  how pixels are weighed (bilinear, nearest, bicubic, lanczos, box)
    """

def center_crop(
    size: int | Sequence[int],
) -> Op:
    """cut out the centre; what is smaller gets a black border

    size  height,width; one number: a square
    """

def random_crop(
    size: int | Sequence[int],
    padding: int = 0,
    fill: int = 0,
) -> Op:
    """cut out a random box of this size

    size     height,width; one number: a square
    padding  pixels put around the image first
    fill     value of these pixels
    """

def three_crop(
    size: int | Sequence[int],
) -> Op:
    """of a clip: the left, middle and right box, or upper to lower, as three clips

    size  height,width; one number: a square
    """

def random_resized_crop(
    size: int | Sequence[int],
    scale: Sequence[float] = (0.08, 1),
    ratio: Sequence[float] = (0.75, 1.3333333333333333),
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
) -> Op:
    """cut out a random part and resize it

    size    height,width; one number: a square
    scale   share of the image's area
    ratio   width / height of the part
    filter  of the resize (bilinear, nearest, bicubic, lanczos, box)
    """

def hflip(
    p: float = 0.5,
) -> Op:
    """swap left and right

    p  how likely it is
    """

def vflip(
    p: float = 0.5,
) -> Op:
    """swap top and bottom

    p  how likely it is
    """

def color_jitter(
    brightness: float | Sequence[float] = 0,
    contrast: float | Sequence[float] = 0,
    saturation: float | Sequence[float] = 0,
    hue: float | Sequence[float] = 0,
) -> Op:
    """change the colours at random, in random order

    brightness  range of the factor; x: 1-x,1+x
    contrast    range of the factor; x: 1-x,1+x
    saturation  range of the factor; x: 1-x,1+x
    hue         range of the turn; x: -x,x
    """

def grayscale(
    p: float = 1,
) -> Op:
    """take the colours away; three equal channels stay

    p  how likely it is
    """

def clip(
    frames: int = 16,
    stride: int = 2,
    offset: float | Literal["random", "center"] = "random",
    pad: Literal["last", "loop", "none"] = "last",
    n: int = 1,
    fps: float = 0,
    seconds: float = 0,
    indices: int | Sequence[int] | Literal["none"] = "none",
    times: Literal["no", "yes"] = "no",
) -> Op:
    """take frames of a clip; comes right behind decode

    frames   of the result
    stride   frames from one that is taken to the next
    offset   where it begins, or the first frame (with fps or seconds: its time in seconds) (random,
            center)
    pad      when there are too few: repeat the last, begin again, or fail (last, loop, none)
    n        clips of each sample; more than one adds a dimension, and each has draws of its own
    fps      frames a second by their times, instead of stride; 0: by stride
    seconds  length of the result by the frames' times, instead of stride; 0: by stride
    indices  numbers of the frames, instead of all other ways (none)
    times    give the frames' times too, in ns, as a field NAME_times (no, yes)
    """

def normalize(
    mean: float | Sequence[float] = (0.485, 0.456, 0.406),
    std: float | Sequence[float] = (0.229, 0.224, 0.225),
) -> Op:
    """(x / 255 - mean) / std; for f32, f16 and bf16

    mean  of values in 0-1, for each channel; ImageNet's
    std   of values in 0-1, for each channel; ImageNet's
    """

def random_erasing(
    p: float = 0.5,
    scale: Sequence[float] = (0.02, 0.33),
    ratio: Sequence[float] = (0.3, 3.3),
    value: float | Sequence[float] = 0,
) -> Op:
    """overwrite a random box

    p      how likely it is
    scale  share of the image's area
    ratio  height / width of the box
    value  what is written: 0-255, behind normalize any number
    """

def tensor(
    dtype: Literal["auto", "u8", "f16", "bf16", "f32", "f64", "i64"] = "auto",
    layout: Literal["nhwc", "nchw", "nthwc", "ncthw", "ntchw"] = "nhwc",
) -> Op:
    """store the result; comes last

    dtype   auto: images u8, numbers as they are; floats are x / 255 unless normalized (auto, u8,
            f16, bf16, f32, f64, i64)
    layout  channels last, or each in its plane; clips: nhwc is nthwc, nchw is ncthw (nhwc, nchw,
            nthwc, ncthw, ntchw)
    """
