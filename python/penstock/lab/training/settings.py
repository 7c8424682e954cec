# SPDX-License-Identifier: Apache-2.0
"""The parameters of a training."""

from __future__ import annotations

import dataclasses
import os
from typing import ClassVar

from ..errors import LabError
from ..experiment.parameters import Base, option
from .schedule import SCHEDULES, Schedule

AUGMENTS = ("crop", "flip", "none")
OPTIMIZERS = ("sgd", "adamw")
DEVICES = ("auto", "cpu", "cuda")
MODELS = ("small", "resnet18", "resnet50")
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_POSITIVE = ("epochs", "batch_size", "size", "lr", "step_epochs", "print_every")
_NOT_NEGATIVE = ("val_resize", "end_lr", "momentum", "weight_decay", "warmup", "gamma",
                 "label_smoothing", "mixup", "cutmix", "threads", "checkpoint_every", "seed")


@dataclasses.dataclass(frozen=True)
class Training(Base):
    """A training, and how often it is repeated with other seeds."""

    EXAMPLE: ClassVar[str] = "penstock-lab train train.pen --val val.pen"

    rounds: int = option(1, "trainings, with the seeds SEED, SEED + 1, ...", short="r")
    train: str = option("", "the pack to train on", positional=True)
    val: str = option("", "the pack to validate on, after every epoch", path=True)
    stages: str = option("", "EPOCHS:PACK,EPOCHS:PACK,...: packs to train on one after the other, "
                         "instead of TRAIN and --epochs")
    epochs: int = option(10, "epochs", short="e")
    model: str = option("small", "small is for CPUs", choices=MODELS)
    batch_size: int = option(128, "samples per batch", short="b")
    size: int = option(224, "pixels of a side of the images", short="s")
    val_resize: int = option(0, "validation: resize the shorter side to this before the center "
                             "crop; 0: to --size")
    gray: bool = option(False, "one channel instead of three")
    augment: str = option("crop", "crop: random resized crop and flip; flip: center crop and flip; "
                          "none: center crop", choices=AUGMENTS)
    mean: tuple[float, ...] = option((), "of each channel, for values of 0 to 1; not given: "
                                     "ImageNet's, or 0.5 with --gray")
    std: tuple[float, ...] = option((), "standard deviation, like --mean")
    optimizer: str = option("sgd", "optimizer", choices=OPTIMIZERS)
    lr: float = option(0.1, "learning rate at the end of the warm-up")
    end_lr: float = option(0.0, "learning rate at the end, for cosine and linear")
    momentum: float = option(0.9, "momentum of SGD, first beta of AdamW")
    nesterov: bool = option(False, "Nesterov momentum")
    weight_decay: float = option(5e-4, "weight decay", short="wd")
    schedule: str = option("cosine", "how the learning rate falls", choices=SCHEDULES)
    warmup: float = option(0.0, "epochs in which the learning rate grows from 0")
    step_epochs: float = option(30.0, "schedule step: epochs between two steps")
    gamma: float = option(0.1, "schedule step: factor of each step")
    label_smoothing: float = option(0.0, "label smoothing", short="smooth")
    mixup: float = option(0.0, "alpha of mixup; 0: off. With --cutmix, each batch has one of both")
    cutmix: float = option(0.0, "alpha of CutMix; 0: off")
    amp: bool = option(False, "automatic mixed precision: f16 on a GPU, bf16 on a CPU")
    channels_last: bool = option(False, "channels-last memory format")
    device: str = option("auto", "auto: cuda if there is one", choices=DEVICES)
    threads: int = option(0, "decoding threads; 0: one per core", short="t")
    seed: int = option(0, "seed of weights, order and augmentation")
    print_every: int = option(100, "batches between two lines")
    checkpoint_every: int = option(0, "batches between two checkpoints; 0: after every epoch")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, allowed = getattr(self, field.name), field.metadata["choices"]
            if allowed and value not in allowed:
                raise LabError(f"{field.name}: expected one of {', '.join(allowed)}, found "
                               f"'{value}'")
            if field.name in _POSITIVE and value <= 0:
                raise LabError(f"{field.name}: expected more than 0, found {value}")
            if field.name in _NOT_NEGATIVE and value < 0:
                raise LabError(f"{field.name}: expected 0 or more, found {value}")
            if field.name in ("mean", "std") and len(value) not in (0, 1, self.channels):
                raise LabError(f"{field.name}: expected 1 or {self.channels} numbers, found "
                               f"{len(value)}")
        if self.nesterov and (self.optimizer != "sgd" or self.momentum == 0):
            raise LabError("nesterov: expected optimizer sgd with a momentum; remove --nesterov")
        if not self.val or bool(self.train) == bool(self.stages):
            raise LabError(f"expected TRAIN or --stages, and --val; for example: {self.EXAMPLE}")
        if (self.mixup or self.cutmix) and self.batch_size % 2:
            raise LabError(f"batch_size: expected an even number with mixup and cutmix, found "
                           f"{self.batch_size}")
        self._make_absolute()

    def _make_absolute(self) -> None:
        """Paths of stages, so that a report can be run again from elsewhere."""
        if self.stages:
            stages = [f"{epochs}:{pack if '://' in pack else os.path.abspath(pack)}"
                      for epochs, pack in self.parts()]
            object.__setattr__(self, "stages", ",".join(stages))

    def parts(self) -> list[tuple[int, str]]:
        """Epochs and pack of each stage."""
        if not self.stages:
            return [(self.epochs, self.train)]
        found = []
        for text in self.stages.split(","):
            epochs, _, pack = text.partition(":")
            if not (pack and epochs.strip().isdigit() and int(epochs) > 0):
                raise LabError(f"stages: expected EPOCHS:PACK,EPOCHS:PACK, found '{text}'")
            found.append((int(epochs), pack))
        return found

    @property
    def total(self) -> int:
        """Epochs of all stages."""
        return sum(epochs for epochs, _ in self.parts())

    @property
    def channels(self) -> int:
        return 1 if self.gray else 3

    @property
    def rates(self) -> Schedule:
        return Schedule(kind=self.schedule, lr=self.lr, end_lr=self.end_lr, epochs=self.total,
                        warmup=self.warmup, every=self.step_epochs, gamma=self.gamma)

    @property
    def colors(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation that images are normalized with."""
        mean, std = ((0.5,), (0.5,)) if self.gray else _IMAGENET
        return self.mean or mean, self.std or std
