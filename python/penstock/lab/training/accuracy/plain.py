# SPDX-License-Identifier: Apache-2.0
"""The same training without packs: a plain PyTorch loop over arrays in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from .... import Loader
from .. import models
from ..data import training_loader
from ..loop import make_optimizer
from ..meters import correct
from ..settings import Training


def order(training: Training, epoch: int) -> Iterator[Any]:
    """Sample numbers of each batch, as the loader has them. No images are read."""
    with Loader(training.train, training.batch_size, shuffle=True, drop_last=True,
                seed=training.seed, pipeline={"label": "tensor i64"}, return_info=True) as loader:
        loader.set_epoch(epoch)
        for batch in loader:
            yield batch.info.samples.numpy()


def normalized(training: Training, pixels: Any) -> Any:
    """Pixels [N, H, W] as network inputs [N, 1, H, W]."""
    (mean,), (std,) = training.colors
    values = torch.from_numpy(pixels).unsqueeze(1).to(torch.float32)
    if training.channels_last:
        values = values.contiguous(memory_format=torch.channels_last)
    return (values / 255 - mean) / std


def compare(training: Training, images: Any, labels: Any) -> dict[str, int]:
    """Batches of one epoch from the pack, and how many equal those of the arrays bit for bit."""
    loader = training_loader(training, int(labels.max()) + 1)
    equal = total = 0
    for numbers, (image, label) in zip(order(training, 0), loader, strict=True):
        same = torch.equal(image, normalized(training, images[numbers]))
        equal += same and torch.equal(label, torch.from_numpy(labels[numbers]).long())
        total += 1
    loader.close()
    return {"batches": total, "equal_batches": equal}


def _validate(training: Training, model: Any, images: Any, labels: Any) -> tuple[float, float]:
    """Top-1 and top-5 in percent."""
    model.eval()
    top1 = top5 = 0
    with torch.no_grad():
        for i in range(0, len(images), training.batch_size):
            part = slice(i, i + training.batch_size)
            scores = model(normalized(training, images[part]))
            hits = correct(scores, torch.from_numpy(labels[part]).long())
            top1, top5 = top1 + hits[0], top5 + hits[1]
    return 100 * top1 / len(images), 100 * top5 / len(images)


def train(training: Training, arrays: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    """What a report has of the training. It has no checkpoints."""
    images, labels = arrays["train"]
    torch.manual_seed(training.seed)
    model = models.make(training.model, int(labels.max()) + 1, 1)
    if training.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = make_optimizer(training, model)
    began, cpu, samples = time.perf_counter(), time.process_time(), 0
    for epoch in range(training.epochs):
        model.train()
        batches = len(images) // training.batch_size
        for step, numbers in enumerate(order(training, epoch)):
            optimizer.param_groups[0]["lr"] = training.rates.rate(epoch + step / batches)
            scores = model(normalized(training, images[numbers]))
            loss = cross_entropy(scores, torch.from_numpy(labels[numbers]).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(numbers)
    seconds = time.perf_counter() - began
    top1, top5 = _validate(training, model, *arrays["test"])
    return {"seconds": seconds, "samples": samples, "cpu": time.process_time() - cpu,
            "top1": top1, "top5": top5}
