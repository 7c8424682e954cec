# SPDX-License-Identifier: Apache-2.0
"""Loaders for training and validation, and the classes of their packs."""

from __future__ import annotations

from typing import Any

from ... import Loader, ops, stages
from ... import open as open_pack
from ..errors import LabError
from .settings import Training


def _end(training: Training) -> list[Any]:
    mean, std = training.colors
    last = training.channels_last
    return [ops.normalize(mean, std), ops.tensor("f32", "nhwc" if last else "nchw")]


def _image(training: Training) -> list[Any]:
    """The pipeline of training images."""
    begin = [ops.decode("gray" if training.gray else "rgb")]
    if training.augment == "crop":
        begin += [ops.random_resized_crop(training.size)]
    else:
        begin += [ops.resize(training.size), ops.center_crop(training.size)]
    if training.augment != "none":
        begin += [ops.hflip()]
    return [*begin, *_end(training), *_mixing(training)]


def _mixing(training: Training) -> list[Any]:
    """With both, each batch has one of them with the same probability, as in timm."""
    share = 0.5 if training.mixup and training.cutmix else 1.0
    mixup = [ops.mixup(training.mixup, p=share)] if training.mixup else []
    return mixup + ([ops.cutmix(training.cutmix, p=share)] if training.cutmix else [])


def training_loader(training: Training, classes: int) -> Any:
    """Batches of image and label; the label is soft if samples are mixed."""
    label = [ops.tensor("i64")]
    if training.mixup or training.cutmix:
        smoothing = training.label_smoothing
        label = [ops.one_hot(classes, label_smoothing=smoothing), ops.tensor("f32")]
    first, starts = 0, []
    for epochs, pack in training.parts():
        starts.append((first, {"pack": pack}))
        first += epochs
    loader = stages(
        starts, batch_size=training.batch_size, shuffle=True, drop_last=True, seed=training.seed,
        pipeline={"image": _image(training), "label": label}, threads=training.threads or None,
    )
    for epoch, _ in starts:
        loader.set_epoch(epoch)
        if len(loader) == 0:
            raise LabError(f"a pack has {loader.samples} samples, fewer than a batch of "
                           f"{training.batch_size}; use a smaller --batch-size")
    loader.set_epoch(0)
    return loader


def validation_loader(training: Training) -> Any:
    """All samples in the order of the pack, with BatchInfo: each counts once."""
    image = [
        ops.decode("gray" if training.gray else "rgb"),
        ops.resize(training.val_resize or training.size), ops.center_crop(training.size),
        *_end(training),
    ]
    return Loader(
        training.val, training.batch_size, threads=training.threads or None, return_info=True,
        pipeline={"image": image, "label": [ops.tensor("i64")]},
    )


def count_classes(training: Training) -> int:
    """The number of classes, which is the same in all packs."""
    names: dict[str, list[str]] = {}
    most = 0
    for path in dict.fromkeys([*(pack for _, pack in training.parts()), training.val]):
        with open_pack(path) as pack:
            if "label" not in pack.schema:
                raise LabError(f"pack '{path}' has no field 'label': training needs class numbers")
            names[path] = pack.classes
            most = max(most, len(pack.classes) or int(pack.column("label").max()) + 1)
    if any(found != names[training.val] for found in names.values()):
        raise LabError(f"the packs have different classes: {', '.join(names)}. Pack the validation "
                       "set with --classes-from TRAIN.pen")
    return most
