# SPDX-License-Identifier: Apache-2.0
"""What the examples share: the options, a small network, and the line that tells how it goes."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import zlib
from typing import Any


def parser(
    text: str | None, source: str = "a pack", epochs: bool = True
) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("path", help=source)
    if epochs:
        made.add_argument("--epochs", type=int, default=2)
    made.add_argument("--batch-size", type=int, default=16)
    return made


def elastic_parser(text: str | None) -> argparse.ArgumentParser:
    """For training that can be killed and resumed."""
    made = parser(text)
    made.add_argument("--save-every", type=int, default=5, help="steps")
    made.add_argument("--sample-log", help="directory for the sample numbers of each step")
    made.add_argument("--pause", type=float, default=0, help="seconds to wait after each step, "
                      "so that you have time to kill a process")
    return made


def small_net(classes: int):
    """Three convolutions in channels-last, as the batches lie."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for channels_in, channels in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(channels_in, channels, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def batches_done(loader: Any, world: int) -> int:
    """How many batches of the epoch to count as done, so that the last one is len(loader). Before
    a resume, they may have had another size."""
    left = loader.samples - loader.state_dict()["position"]
    return len(loader) - math.ceil(left / (loader.batch_size * world))


def print_start(loader: Any, world: int) -> None:
    position = loader.state_dict()["position"]
    print(f"{world} ranks, epoch {loader.epoch}, sample {position}", flush=True)


class Average:
    def __init__(self) -> None:
        self.last = self.sum = 0.0
        self.n = 0

    def add(self, value: float, n: int = 1) -> None:
        self.last = value
        self.sum += value * n
        self.n += n

    @property
    def mean(self) -> float:
        return self.sum / max(1, self.n)


class Progress:
    """Times batches, and prints after every 10 of them and the last:

    Epoch [0][10/37]  Time 0.052 (0.060)  Data 0.001 (0.004)  Loss 1.0986  Prec@1 34.38

    Time is of the whole batch, Data the part of it that was spent waiting for samples, the mean of
    each in brackets; loss and precision are means over the epoch.
    """

    def __init__(self, epoch: int, batches: int, first: int = 0, quiet: bool = False) -> None:
        self.epoch, self.batches, self.i, self.quiet = epoch, batches, first, quiet
        self.time, self.data, self.loss, self.precision = (Average() for _ in range(4))
        self._start = time.perf_counter()

    def got_batch(self) -> None:
        """The batch is here; what follows is computing."""
        self.data.add(time.perf_counter() - self._start)

    def done_batch(self, loss: float, correct: int, n: int) -> None:
        self.loss.add(loss, n)
        self.precision.add(100.0 * correct / max(1, n), n)
        now = time.perf_counter()
        self.time.add(now - self._start)
        self._start = now
        self.i += 1
        if not self.quiet and (self.i % 10 == 0 or self.i == self.batches):
            print(self, flush=True)

    def __str__(self) -> str:
        return (
            f"Epoch [{self.epoch}][{self.i}/{self.batches}]"
            f"  Time {self.time.last:.3f} ({self.time.mean:.3f})"
            f"  Data {self.data.last:.3f} ({self.data.mean:.3f})"
            f"  Loss {self.loss.mean:.4f}  Prec@1 {self.precision.mean:.2f}"
        )


class SampleLog:
    """Records which samples each step has used: a file of JSON lines for each process.

    The first line names the run of the process group, and the run and step of the checkpoint that
    it resumed. So the lines of all runs together show the samples that the model was trained on.
    """

    def __init__(self, directory: str | None, run: str, rank: int, world: int, resumed: Any):
        self._file = None
        if directory:
            os.makedirs(directory, exist_ok=True)
            self._file = open(os.path.join(directory, f"{run}.{rank}"), "w")
        self._write({"run": run, "rank": rank, "world": world, "pid": os.getpid(),
                     "resumed": resumed})

    def add(self, step: int, info: Any) -> None:
        self._write({"step": step, "epoch": info.epoch,
                     "samples": info.samples[info.valid].tolist()})

    def done(self) -> None:
        self._write({"done": True})

    def _write(self, row: dict[str, Any]) -> None:
        if self._file:
            print(json.dumps(row), file=self._file, flush=True)


def recipe_parser(text: str | None, source: str = "a pack") -> argparse.ArgumentParser:
    """For training that prints every step, and continues from its checkpoint."""
    made = parser(text, source)
    made.add_argument("--checkpoint", default=f"{os.path.basename(sys.argv[0])[:-3]}.pt")
    made.add_argument("--save-every", type=int, default=5, help="steps")
    return made


class Recipe:
    """Trains with parts that have a state (network, optimizer, loader), and saves them every few
    steps. Started again, it continues after the last checkpoint. It prints for every step

    Step 12  epoch 1  Loss 1.0986  batch 1c291ca3

    where the last number is a checksum of the batch: a run that was killed and resumed has the same
    lines as one that was not."""

    def __init__(self, args: argparse.Namespace, **parts: Any) -> None:
        import torch

        self.args, self.parts, self.step = args, parts, 0
        if os.path.exists(args.checkpoint):
            saved = torch.load(args.checkpoint, weights_only=True)
            self.step = saved.pop("step")
            for name, state in saved.items():
                parts[name].load_state_dict(state)

    def train(self, loss_of: Any) -> None:
        """loss_of(batch) returns the loss."""
        loader, optimizer = self.parts["loader"], self.parts["optimizer"]
        if loader.epoch >= self.args.epochs:
            print(f"{self.args.checkpoint} has finished its {self.args.epochs} epochs: use more "
                  "--epochs, or delete it")
        for epoch in range(loader.epoch, self.args.epochs):
            loader.set_epoch(epoch)
            for batch in loader:
                loss = loss_of(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.step += 1
                print(f"Step {self.step}  epoch {epoch}  Loss {loss.item():.4f}  "
                      f"batch {checksum(batch):08x}", flush=True)
                if self.step % self.args.save_every == 0:
                    self.save()
        self.save()

    def save(self) -> None:
        """Whole or not at all: under another name first."""
        import torch

        states = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**states, "step": self.step}, self.args.checkpoint + ".new")
        os.replace(self.args.checkpoint + ".new", self.args.checkpoint)


def checksum(batch: Any) -> int:
    """Of all fields of a batch."""
    value = 0
    for field in batch:
        for item in [field] if hasattr(field, "numpy") else field:
            data = item.contiguous().numpy() if hasattr(item, "numpy") else repr(item).encode()
            value = zlib.crc32(data, value)
    return value
