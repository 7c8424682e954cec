# SPDX-License-Identifier: Apache-2.0
"""The learning rate of every step. Times are in epochs, and may be fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass

SCHEDULES = ("constant", "cosine", "linear", "step")


@dataclass(frozen=True)
class Schedule:
    """kind     one of SCHEDULES
    lr       the rate at the end of the warm-up
    end_lr   the rate at the end of training, for cosine and linear
    epochs   length of training
    warmup   epochs in which the rate grows from 0 to lr in a straight line
    every    epochs after which the kind "step" multiplies the rate by gamma
    gamma    see every
    """

    kind: str
    lr: float
    end_lr: float
    epochs: float
    warmup: float
    every: float
    gamma: float

    def rate(self, epoch: float) -> float:
        """The learning rate at a time."""
        if epoch < self.warmup:
            return self.lr * epoch / self.warmup
        if self.kind == "step":
            return self.lr * self.gamma ** math.floor(epoch / self.every)
        share = (epoch - self.warmup) / max(self.epochs - self.warmup, 1e-9)
        if self.kind == "cosine":
            return self.end_lr + (self.lr - self.end_lr) * (1 + math.cos(math.pi * share)) / 2
        if self.kind == "linear":
            return self.lr + (self.end_lr - self.lr) * share
        return self.lr
