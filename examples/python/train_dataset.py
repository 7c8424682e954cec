# SPDX-License-Identifier: Apache-2.0
"""Train with torch's DataLoader over penstock.Dataset, with a Python transform.

    python3 examples/make_photos.py photos 600
    penstock pack photos -o photos.pen
    python3 examples/python/train_dataset.py photos.pen

The DataLoader, its sampler and its workers stay as they are; penstock reads, decodes and crops.
Killed and started again, it continues after the last checkpoint with the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import penstock
import torch
from common import Recipe, recipe_parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Sampler


def add_noise(sample: dict[str, Any], rng: numpy.random.Generator) -> dict[str, Any]:
    """Any Python code. What is random comes from `rng`, so that it is the same in every run."""
    image = sample["image"]
    noise = torch.from_numpy(rng.normal(0, 0.1, image.shape).astype(numpy.float32))
    return {"image": image + noise, "label": sample["label"]}


class Order(Sampler[int]):
    """A shuffle that depends on the epoch, and can begin in the middle."""

    def __init__(self, n: int) -> None:
        self.n, self.epoch, self.start = n, 0, 0

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.epoch)
        return iter(torch.randperm(self.n, generator=generator).tolist()[self.start :])


class Batches:
    """A DataLoader that knows its position."""

    def __init__(self, dataset: penstock.Dataset, batch_size: int, workers: int) -> None:
        self.dataset, self.order = dataset, Order(len(dataset))
        self.epoch, self.done, self.batch_size = 0, 0, batch_size
        self.loader = DataLoader(
            dataset, batch_size, sampler=self.order, drop_last=True, num_workers=workers,
            persistent_workers=workers > 0,
        )

    def __iter__(self) -> Iterator[Any]:
        self.dataset.set_epoch(self.epoch)  # reaches the workers, too
        self.order.epoch, self.order.start = self.epoch, self.done * self.batch_size
        for batch in self.loader:
            self.done += 1
            yield batch

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.done = epoch, 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.done = state["epoch"], state["done"]


def main() -> None:
    options = recipe_parser(__doc__)
    options.add_argument("--workers", type=int, default=2, help="processes that decode")
    args = options.parse_args()
    pack = penstock.open(args.path)
    dataset = penstock.Dataset(pack, [
        ops.decode(), ops.random_resized_crop(64), ops.hflip(), ops.normalize(),
        ops.tensor("f32", "nchw"), ops.python(add_noise, version=1),
    ])
    loader, model = Batches(dataset, args.batch_size, args.workers), small_net(len(pack.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def loss_of(batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch.image), batch.label)

    Recipe(args, model=model, optimizer=optimizer, loader=loader).train(loss_of)


if __name__ == "__main__":
    main()
