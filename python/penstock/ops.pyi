# SPDX-License-Identifier: Apache-2.0
# Made by tests/python/ops_stub.py from the library's table of operations; do not edit.
from collections.abc import Sequence
from typing import Literal

from ._pipeline import Op as Op
from ._pipeline import source as source
from ._python import python as python

def decode(
    mode: Literal["rgb", "gray"] = "rgb",
    shrink: Literal["off", "auto"] = "off",
) -> Op:
    """Decode the image. Must be the first operation.

    mode    channels of the result; a mask always has one (rgb, gray)
    shrink  auto: decode JPEG images at 1/2, 1/4 or 1/8 of their size if the first resize makes them
            smaller still; faster, with slightly different pixels (off, auto)
    """

def resize(
    size: int | Sequence[int] | Literal["none"] = "none",
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
    min_side: int | Sequence[int] | Literal["none"] = "none",
    max_side: int | Literal["none"] = "none",
    to_multiple_of: int | Literal["none"] = "none",
    enlarge: Literal["yes", "no"] = "yes",
) -> Op:
    """Resize with antialiasing.

    size            length of the shorter side, or exact height,width; without min_side and max_side
            (none)
    filter          interpolation filter (bilinear, nearest, bicubic, lanczos, box)
    min_side        length of the shorter side, unless the longer one would exceed max_side; of
            several numbers, one is drawn for each image (none)
    max_side        most pixels of the longer side; without min_side, its length (none)
    to_multiple_of  round both sides to the nearest multiple; down where max_side would be exceeded
            (none)
    enlarge         no: an image that min_side and max_side would make larger keeps its size (yes,
            no)
    """

def center_crop(
    size: int | Sequence[int] | Literal["bucket"],
) -> Op:
    """Crop the center. A smaller image is padded with black.

    size  height,width, or one number for a square; or the size of the batch's bucket (bucket)
    """

def random_crop(
    size: int | Sequence[int] | Literal["bucket"],
    padding: int = 0,
    fill: int = 0,
) -> Op:
    """Crop a random region of a fixed size.

    size     height,width, or one number for a square; or the size of the batch's bucket (bucket)
    padding  pixels added on each side before the crop
    fill     value of the added pixels
    """

def three_crop(
    size: int | Sequence[int],
) -> Op:
    """Make three clips of one: crops at both ends and the center of its longer side.

    size  height,width, or one number for a square
    """

def random_resized_crop(
    size: int | Sequence[int] | Literal["bucket"],
    scale: Sequence[float] = (0.08, 1),
    ratio: Sequence[float] = (0.75, 1.3333333333333333),
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
) -> Op:
    """Crop a random region and resize it.

    size    height,width, or one number for a square; or the size of the batch's bucket (bucket)
    scale   area of the region, as a fraction of the image
    ratio   width / height of the region
    filter  interpolation filter (bilinear, nearest, bicubic, lanczos, box)
    """

def cover(
    size: int | Sequence[int] | Literal["bucket"],
    position: Literal["center", "random"] = "center",
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
) -> Op:
    """Resize to cover the size, keeping the aspect ratio, and crop the rest.

    size      height,width, or one number for a square; or the size of the batch's bucket (bucket)
    position  which part is kept (center, random)
    filter    interpolation filter (bilinear, nearest, bicubic, lanczos, box)
    """

def patches(
    side: int,
    length: int | Literal["tokens"] = "tokens",
    filter: Literal["bilinear", "nearest", "bicubic", "lanczos", "box"] = "bilinear",
) -> Op:
    """Resize to at most length patches, keeping the aspect ratio, and return the sequence.

    side    height and width of a patch, in pixels
    length  most patches of an image, which a shorter sequence is padded to; tokens: the length of
            the step, of the loader's lengths (tokens)
    filter  interpolation filter (bilinear, nearest, bicubic, lanczos, box)
    """

def hflip(
    p: float = 0.5,
) -> Op:
    """Flip left and right.

    p  probability
    """

def vflip(
    p: float = 0.5,
) -> Op:
    """Flip top and bottom.

    p  probability
    """

def random_rotation(
    degrees: float | Sequence[float],
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "nearest",
    fill: int | Sequence[int] = 0,
    center: float | Sequence[float] | Literal["none"] = "none",
) -> Op:
    """Rotate by a random angle, counterclockwise.

    degrees        range of the angle; x means -x,x
    interpolation  interpolation filter (bilinear, nearest, bicubic)
    fill           value where there is no image: one number, or one per channel
    center         x,y of the pixel that stays in place; none: the center of the image (none)
    """

def random_affine(
    degrees: float | Sequence[float],
    translate: float | Sequence[float] = (0, 0),
    scale: Sequence[float] = (1, 1),
    shear: float | Sequence[float] = 0,
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "nearest",
    fill: int | Sequence[int] = 0,
    center: float | Sequence[float] | Literal["none"] = "none",
) -> Op:
    """Rotate clockwise, move, scale and shear, each by a random amount.

    degrees        range of the angle; x means -x,x
    translate      largest shift in x and y, as fractions of the width and the height
    scale          range of the factor
    shear          range of the angle along x; x means -x,x; four numbers: the ranges along x and y
    interpolation  interpolation filter (bilinear, nearest, bicubic)
    fill           value where there is no image: one number, or one per channel
    center         x,y of the pixel that stays in place; none: the center of the image (none)
    """

def random_perspective(
    distortion_scale: float = 0.5,
    p: float = 0.5,
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    fill: int | Sequence[int] = 0,
) -> Op:
    """Move the four corners randomly, as if seen from another place.

    distortion_scale  most that a corner moves, as a fraction of half the side
    p                 probability
    interpolation     interpolation filter (bilinear, nearest, bicubic)
    fill              value where there is no image: one number, or one per channel
    """

def pad(
    padding: int | Sequence[int],
    fill: int | Sequence[int] = 0,
    padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
) -> Op:
    """Add pixels on each side.

    padding       pixels on each side; or of left and right, top and bottom; or of left, top, right,
            bottom
    fill          value of the added pixels, if constant: one number, or one per channel
    padding_mode  of the added pixels: fill, the pixel at the edge, the image mirrored at the middle
            of that pixel, or at the edge (constant, edge, reflect, symmetric)
    """

def five_crop(
    size: int | Sequence[int],
) -> Op:
    """Return five results per image: crops of the four corners and the center.

    size  height,width, or one number for a square
    """

def ten_crop(
    size: int | Sequence[int],
    vertical_flip: Literal["no", "yes"] = "no",
) -> Op:
    """Return ten results per image: those of five_crop, and of the flipped image.

    size           height,width, or one number for a square
    vertical_flip  flip top and bottom instead of left and right (no, yes)
    """

def color_jitter(
    brightness: float | Sequence[float] = 0,
    contrast: float | Sequence[float] = 0,
    saturation: float | Sequence[float] = 0,
    hue: float | Sequence[float] = 0,
) -> Op:
    """Change the colors randomly. The changes run in random order.

    brightness  range of the factor; x means 1-x,1+x
    contrast    range of the factor; x means 1-x,1+x
    saturation  range of the factor; x means 1-x,1+x
    hue         range of the hue shift; x means -x,x
    """

def grayscale(
    p: float = 1,
) -> Op:
    """Remove the colors. The result keeps three equal channels.

    p  probability
    """

def random_invert(
    p: float = 0.5,
) -> Op:
    """Invert all values: x becomes 255 - x.

    p  probability
    """

def random_posterize(
    bits: int,
    p: float = 0.5,
) -> Op:
    """Keep the highest bits of each value.

    bits  bits that are kept of each value
    p     probability
    """

def random_solarize(
    threshold: float,
    p: float = 0.5,
) -> Op:
    """Invert the values from a threshold on.

    threshold  values from this one on are inverted
    p          probability
    """

def random_equalize(
    p: float = 0.5,
) -> Op:
    """Equalize the histogram of each channel.

    p  probability
    """

def random_autocontrast(
    p: float = 0.5,
) -> Op:
    """Stretch the values of each channel to 0-255.

    p  probability
    """

def random_adjust_sharpness(
    sharpness_factor: float,
    p: float = 0.5,
) -> Op:
    """Make the image sharper or smoother.

    sharpness_factor  0: smooth, 1: unchanged, 2: twice as sharp
    p                 probability
    """

def adjust_gamma(
    gamma: float | Sequence[float],
    gain: float = 1,
) -> Op:
    """Compute 255 * gain * (x / 255) ^ gamma.

    gamma  exponent; above 1, shadows become darker; of low,high, one is drawn for each image
    gain   factor
    """

def gaussian_blur(
    kernel_size: int | Sequence[int],
    sigma: float | Sequence[float] = (0.1, 2),
) -> Op:
    """Blur with a Gaussian kernel.

    kernel_size  height,width of the kernel in pixels, or one number for both; odd
    sigma        standard deviation in pixels; of low,high, one is drawn for each image
    """

def random_channel_permutation(
    p: float = 1,
) -> Op:
    """Put the three channels in a random order.

    p  probability
    """

def jpeg(
    quality: float | Sequence[float],
) -> Op:
    """Compress the image as JPEG (4:2:0) and decode it again.

    quality  quality of the JPEG, an integer; of low,high, one is drawn for each image
    """

def random_apply(
    ops: str | Op | Sequence[str | Op],
    p: float = 0.5,
) -> Op:
    """Apply the operations in brackets with a probability.

    ops  operations in brackets: [hflip | grayscale]
    p    probability
    """

def random_choice(
    ops: Sequence[str | Op | Sequence[str | Op]],
    p: Sequence[float] | Literal["equal"] = "equal",
) -> Op:
    """Apply the operations of one of several brackets.

    ops  the alternatives, each in brackets: [hflip] [vflip | grayscale]
    p    weight of each bracket; equal: all are as likely (equal)
    """

def random_order(
    ops: str | Op | Sequence[str | Op],
) -> Op:
    """Apply the operations in brackets in random order.

    ops  operations in brackets: [hflip | grayscale]
    """

def rand_augment(
    num_ops: int = 2,
    magnitude: int = 9,
    num_magnitude_bins: int = 31,
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "nearest",
    fill: int | Sequence[int] = 0,
) -> Op:
    """Apply some random operations of RandAugment, all of one magnitude.

    num_ops             operations that are applied
    magnitude           strength of all operations, from 0 to num_magnitude_bins - 1
    num_magnitude_bins  number of magnitudes
    interpolation       filter of what moves pixels (bilinear, nearest, bicubic)
    fill                value where there is no image: one number, or one per channel
    """

def trivial_augment(
    num_magnitude_bins: int = 31,
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "nearest",
    fill: int | Sequence[int] = 0,
) -> Op:
    """Apply one random operation of a random magnitude (TrivialAugment Wide).

    num_magnitude_bins  number of magnitudes
    interpolation       filter of what moves pixels (bilinear, nearest, bicubic)
    fill                value where there is no image: one number, or one per channel
    """

def auto_augment(
    policy: Literal["imagenet", "cifar10", "svhn"] = "imagenet",
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "nearest",
    fill: int | Sequence[int] = 0,
) -> Op:
    """Apply one of the 25 pairs of operations of a policy of AutoAugment.

    policy         data set that the policy was found on (imagenet, cifar10, svhn)
    interpolation  filter of what moves pixels (bilinear, nearest, bicubic)
    fill           value where there is no image: one number, or one per channel
    """

def aug_mix(
    severity: int = 3,
    mixture_width: int = 3,
    chain_depth: int = -1,
    alpha: float = 1,
    all_ops: Literal["no", "yes"] = "yes",
    interpolation: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    fill: int | Sequence[int] = 0,
) -> Op:
    """Blend the image with chains of random operations on it (AugMix).

    severity       magnitudes are drawn from so many of 10, from the weakest on
    mixture_width  chains of operations
    chain_depth    operations of a chain; -1 or 0: 1 to 3, drawn for each chain
    alpha          parameter of the Dirichlet and beta distributions of the weights
    all_ops        with brightness, color, contrast and sharpness (no, yes)
    interpolation  filter of what moves pixels (bilinear, nearest, bicubic)
    fill           value where there is no image: one number, or one per channel
    """

def three_augment(
    color_jitter: float | Sequence[float] = 0.3,
) -> Op:
    """Apply grayscale, solarize or a blur, then color jitter (3-Augment of DeiT III).

    color_jitter  range of the factors of brightness, contrast and saturation; x means 1-x,1+x
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
    at: int | Literal["none"] = "none",
) -> Op:
    """Select frames of a clip. Must directly follow decode.

    frames   number of frames to select
    stride   distance between selected frames, in frames
    offset   first frame; with fps or seconds, the start time in seconds (random, center)
    pad      if the clip is too short: repeat the last frame, start over, or fail (last, loop, none)
    n        clips per sample; more than one adds a dimension; each clip has its own random draws
    fps      select frames by time at this rate, instead of by stride; 0: off
    seconds  select frames by time over this duration, instead of by stride; 0: off
    indices  frame numbers to select, instead of frames, stride and offset (none)
    times    also return the frame times in ns, as a field NAME_times (no, yes)
    at       if samples are frames: first frame, counted from the frame of the sample, instead of
            offset; also return a field NAME_mask that is true for frames of the clip, and false
            where its first or last frame is repeated (none)
    """

def normalize(
    mean: float | Sequence[float] = (0.485, 0.456, 0.406),
    std: float | Sequence[float] = (0.229, 0.224, 0.225),
) -> Op:
    """Compute (x / 255 - mean) / std. Needs dtype f32, f16 or bf16.

    mean  per channel, for values scaled to 0-1; default: ImageNet
    std   per channel, for values scaled to 0-1; default: ImageNet
    """

def random_erasing(
    p: float = 0.5,
    scale: Sequence[float] = (0.02, 0.33),
    ratio: Sequence[float] = (0.3, 3.3),
    value: float | Sequence[float] = 0,
) -> Op:
    """Overwrite a random rectangle.

    p      probability
    scale  area of the rectangle, as a fraction of the image
    ratio  height / width of the rectangle
    value  fill value: 0-255 before normalize, any number after it
    """

def tensor(
    dtype: Literal["auto", "u8", "f16", "bf16", "f32", "f64", "i64"] = "auto",
    layout: Literal["nhwc", "nchw", "nthwc", "ncthw", "ntchw"] = "nhwc",
) -> Op:
    """Store the result in the batch. Only repeat, pad_batch, mixup and cutmix can follow.

    dtype   auto: u8 for images, the stored type for numbers; float images are x / 255 unless
            normalized (auto, u8, f16, bf16, f32, f64, i64)
    layout  channels last (nhwc) or first (nchw); for clips, nhwc means nthwc and nchw means ncthw
            (nhwc, nchw, nthwc, ncthw, ntchw)
    """

def repeat(
    n: int,
) -> Op:
    """Return several results per image, each with its own random draws. No operation can follow.

    n  results per image; they are a dimension after that of the batch
    """

def pad_batch(
    to_multiple_of: int = 1,
    value: float = 0,
) -> Op:
    """Pad images of different sizes to the largest of the batch. No operation can follow.

    to_multiple_of  round the sides of the batch up to a multiple
    value           number of the result to fill with: 0-255 for u8, any number for others
    """

def mixup(
    alpha: float = 1,
    p: float = 1,
    per: Literal["batch", "sample"] = "batch",
) -> Op:
    """Mix each sample of a batch with another one. Must follow all others but cutmix.

    alpha  of the beta distribution that the share of the sample itself is drawn from
    p      probability; with cutmix at most one of both is drawn, each with its probability
    per    batch: one choice, one share and one box for all samples of a batch; sample: for each
            sample (batch, sample)
    """

def cutmix(
    alpha: float = 1,
    p: float = 1,
    per: Literal["batch", "sample"] = "batch",
) -> Op:
    """Replace a box of each sample by that of another one. Must follow all others but mixup.

    alpha  of the beta distribution that the share of the sample itself is drawn from
    p      probability; with mixup at most one of both is drawn, each with its probability
    per    batch: one choice, one share and one box for all samples of a batch; sample: for each
            sample (batch, sample)
    """

def one_hot(
    classes: int,
    label_smoothing: float = 0,
    of: str = "auto",
) -> Op:
    """Return class numbers as targets, one number per class, which follow mixup and cutmix.

    classes          number of classes
    label_smoothing  share of the target that is spread over all classes, as in cross_entropy of
            PyTorch
    of               image of the pipeline whose mixup or cutmix the labels follow; auto: the only
            one (auto)
    """

def text(
    max_bytes: int = 65536,
) -> Op:
    """Return a text, json or bytes field as a list of str. Must be the only operation.

    max_bytes  largest value in bytes; a batch reserves so many for each sample
    """

def json(
    max_bytes: int = 65536,
) -> Op:
    """Return a text, json or bytes field as a list of JSON values. Must be the only operation.

    max_bytes  largest value in bytes; a batch reserves so many for each sample
    """

def bytes(
    max_bytes: int = 65536,
) -> Op:
    """Return a text, json or bytes field as a list of bytes. Must be the only operation.

    max_bytes  largest value in bytes; a batch reserves so many for each sample
    """

def key(
    max_bytes: int = 4096,
) -> Op:
    """Return the key of each sample, as a field of any name that the pack does not have.

    max_bytes  largest value in bytes; a batch reserves so many for each sample
    """

def ragged(
    max_rows: int = 1024,
    pad: float | Literal["none"] = "none",
    at: int | Literal["none"] = "none",
    stride: int | Literal["none"] = "none",
) -> Op:
    """Return a field whose number of rows differs between samples, such as f32[*,4].

    max_rows  largest number of rows; a batch reserves so many for each sample
    pad       none: values and offsets; a number: a tensor of max_rows rows per sample, filled with
            it, and a field NAME_mask that is true for rows of the sample (none)
    at        if samples are frames: a tensor of max_rows rows, the first one counted from the frame
            of the sample, and a field NAME_mask that is false where the first or last row is
            repeated (none)
    stride    with at: distance between rows; none: 1 (none)
    """

def boxes(
    of: str = "auto",
    format: Literal["stored", "xyxy", "xywh", "cxcywh"] = "stored",
    unit: Literal["stored", "absolute", "relative"] = "stored",
    clip: Literal["yes", "no"] = "yes",
    drop: Literal["yes", "no"] = "yes",
    min_size: float = 1,
    min_area: float = 0,
    min_visibility: float = 0,
    kept: Literal["no", "yes"] = "no",
) -> Op:
    """Move boxes to where the crops, resizes and flips of an image move its pixels.

    of              image of the pipeline that they follow; auto: the only one (auto)
    format          of the result (stored, xyxy, xywh, cxcywh)
    unit            of the result: pixels, or fractions of its width and height (stored, absolute,
            relative)
    clip            cut boxes at the edges of what the result shows of the image (yes, no)
    drop            drop boxes of which nothing is visible, or less than the next three (yes, no)
    min_size        smallest width and height of the visible part, in pixels of the result
    min_area        smallest area of the visible part, in pixels of the result
    min_visibility  smallest visible fraction of the area of the box
    kept            also return the numbers of the rows that are kept, as a field NAME_kept (no,
            yes)
    """

def points(
    of: str = "auto",
    unit: Literal["stored", "absolute", "relative"] = "stored",
    clip: Literal["no", "yes"] = "no",
    drop: Literal["yes", "no"] = "yes",
    kept: Literal["no", "yes"] = "no",
) -> Op:
    """Move points to where the crops, resizes and flips of an image move its pixels.

    of    image of the pipeline that they follow; auto: the only one (auto)
    unit  of the result: pixels, or fractions of its width and height (stored, absolute, relative)
    clip  move points to the nearest edge of what the result shows of the image (no, yes)
    drop  drop rows without a visible point (yes, no)
    kept  also return the numbers of the rows that are kept, as a field NAME_kept (no, yes)
    """

def keep(
    of: str,
) -> Op:
    """Keep the rows that boxes or points kept in another field: labels follow their boxes.

    of  field of the pipeline with the operation boxes or points
    """
