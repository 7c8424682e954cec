# SPDX-License-Identifier: Apache-2.0
"""Train and validate. A training that was killed continues from its last checkpoint, with the same
result as one that was not: the state of network, optimizer, loader and random numbers is in it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from ..errors import LabError
from . import checkpoint, models
from .data import count_classes, training_loader, validation_loader
from .meters import Meter, correct
from .settings import Training


def choose_device(name: str) -> Any:
    if name == "cuda" and not torch.cuda.is_available():
        raise LabError("device: PyTorch finds no CUDA device; use --device cpu")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def make_optimizer(training: Training, model: Any) -> Any:
    if training.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=training.lr, eps=1e-8,
                                 betas=(training.momentum, 0.999),
                                 weight_decay=training.weight_decay)
    return torch.optim.SGD(model.parameters(), lr=training.lr, momentum=training.momentum,
                           nesterov=training.nesterov, weight_decay=training.weight_decay)


class Trainer:
    """One training.

    folder  where the checkpoint is
    say     called with each line of text
    """

    def __init__(
        self, training: Training, folder: pathlib.Path, say: Callable[[str], None]
    ) -> None:
        self.training, self.folder, self.say = training, folder, say
        folder.mkdir(parents=True, exist_ok=True)
        self.device = choose_device(training.device)
        classes = count_classes(training)
        torch.manual_seed(training.seed)
        model = models.make(training.model, classes, training.channels)
        if training.channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.model = model.to(self.device)
        self.optimizer = make_optimizer(training, self.model)
        # Gradients of f16 need a scale; on a CPU, autocast computes in bf16, which does not.
        self.scaler = torch.amp.GradScaler(
            self.device.type, enabled=training.amp and self.device.type == "cuda")
        self.loader = training_loader(training, classes)
        self.val = validation_loader(training)
        self.history: list[dict[str, Any]] = []
        self.meter = Meter()
        self.resumed = self._restore()

    def _restore(self) -> bool:
        saved = checkpoint.load(self.folder)
        if saved is None:
            return False
        if saved["training"] != self._description():
            raise LabError(f"'{self.folder / checkpoint.NAME}' is of another training. Choose "
                           "another folder, or remove it")
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.scaler.load_state_dict(saved["scaler"])
        self.loader.load_state_dict(saved["loader"])
        torch.set_rng_state(saved["random"])
        self.history, self.meter = saved["history"], Meter(saved["meter"])
        return True

    def _description(self) -> str:
        return json.dumps(dataclasses.asdict(self.training))

    def _save(self) -> None:
        checkpoint.save(self.folder, {
            "training": self._description(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "random": torch.get_rng_state(),
            "history": self.history,
            "meter": self.meter.sums,
        })

    def _autocast(self) -> Any:
        kind = torch.float16 if self.device.type == "cuda" else torch.bfloat16
        return torch.autocast(self.device.type, dtype=kind, enabled=self.training.amp)

    def _step(self, image: Any, label: Any, rate: float) -> None:
        """One step of the optimizer. label has class numbers, or one share per class."""
        image, label = image.to(self.device), label.to(self.device)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        soft = label.dim() > 1  # the pipeline has smoothed these
        with self._autocast():
            scores = self.model(image)
            loss = cross_entropy(
                scores, label, label_smoothing=0.0 if soft else self.training.label_smoothing)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        numbers = label.argmax(1) if soft else label
        self.meter.done_batch(len(label), loss.item(), *correct(scores.detach(), numbers))

    def _epoch(self, epoch: int) -> None:
        """The batches of an epoch that are not done yet."""
        self.loader.set_epoch(epoch)
        self.model.train()
        batches, rates = len(self.loader), self.training.rates
        every = self.training.checkpoint_every
        self.meter.start()
        for image, label in self.loader:
            self.meter.got_batch()
            done = int(self.meter.sums["batches"])
            self._step(image, label, rates.rate(epoch + done / batches))
            done += 1
            if done % self.training.print_every == 0 or done == batches:
                self.say(f"Epoch [{epoch}][{done}/{batches}]  {self.meter.line()}")
            if every and done % every == 0:
                self._save()

    def validate(self, loader: Any) -> dict[str, float]:
        """Loss and accuracy over all samples, each counted once."""
        self.model.eval()
        meter = Meter()
        with torch.no_grad():
            loader.set_epoch(0)
            for image, label, info in loader:
                meter.got_batch()
                image, label = image[: info.n_valid], label[: info.n_valid]
                label = label.to(self.device)
                with self._autocast():
                    scores = self.model(image.to(self.device)).float()
                meter.done_batch(info.n_valid, cross_entropy(scores, label).item(),
                                 *correct(scores, label))
        assert meter.sums["samples"] == loader.samples
        return meter.result()

    def run(self) -> dict[str, Any]:
        """Train to the end, and return what a report has of it."""
        began, cpu = time.perf_counter(), time.process_time()
        for epoch in range(len(self.history), self.training.total):
            self._epoch(epoch)
            val = self.validate(self.val)
            self.history.append({"epoch": epoch, "train": self.meter.result(), "val": val})
            self.meter = Meter()
            self.say(f"Test  [{epoch}]  Loss {val['loss']:.4f}  Prec@1 {val['top1']:.2f}  Prec@5 "
                     f"{val['top5']:.2f}  ({val['samples']:.0f} samples)")
            self._save()
        # Of all processes that took part, as the sums of the epochs are.
        train = [epoch["train"] for epoch in self.history]
        return {
            "seconds": sum(each["seconds"] for each in train),
            "data_seconds": sum(each["data_seconds"] for each in train),
            "samples": sum(each["samples"] for each in train),
            "cpu": time.process_time() - cpu,
            "process_seconds": time.perf_counter() - began,
            "top1": self.history[-1]["val"]["top1"],
            "top5": self.history[-1]["val"]["top5"],
            "epochs": self.history,
            "resumed": self.resumed,
        }

    def close(self) -> None:
        self.loader.close()
        self.val.close()
