#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well shuffle=True mixes a pack that is sorted by class, beside order="random".

    ./dev bench shuffle [mix] [train] [picture] [--epochs N] [--seeds N]

mix      a pack of 400,000 numbers in 1,000 classes: distances between neighbors of the pack, and
         blocks and classes in a batch of 256
train    a small network on Fashion-MNIST, sorted by class, in each order with several seeds; needs
         apt-get install dataset-fashion-mnist
picture  which samples the first batches have, as a PNG

Tables are printed; everything is written to build/bench/shuffle-quality.
"""

import argparse
import sys

import numpy as np
from common import places, say
from penstock import Loader, write
from penstock.lab.loaders import report

OUT = places.BENCH.parent / "build" / "bench" / "shuffle-quality"
BATCH, BLOCK = 256, 32
# Orders by the name that the tables have: arguments of a Loader.
BUFFER = 384 * BLOCK
MIX = {
    "random": {"order": "random"},
    f"shuffle, buffer {BUFFER:,} (384 blocks)": {"order": "shuffle", "shuffle_buffer": BUFFER},
    f"shuffle, buffer {BUFFER // 4:,} (96 blocks)": {
        "order": "shuffle", "shuffle_buffer": BUFFER // 4},
}


def pack_of(name, labels, block_samples):
    """A pack of labels alone: the order does not depend on what else a sample has."""
    path = OUT / name
    if not (path / "manifest").exists():
        rows = ({"label": int(label)} for label in labels)
        write(path, rows, {"label": "i64"}, block_samples=block_samples)
    return path


def order_of(path, epoch, seed, batch=BATCH, **order):
    """Sample numbers of an epoch, by position."""
    with Loader(path, batch, seed=seed, pipeline={"label": "tensor"}, output="numpy",
                         return_info=True, **order) as loader:
        loader.set_epoch(epoch)
        return np.concatenate([b.info.samples[b.info.valid].copy() for b in loader])


# ---- mixing ----------------------------------------------------------------------------------


def distances(order):
    """How far apart neighbors of the pack are delivered: 5th, 50th and 95th percentile."""
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    return np.percentile(np.abs(np.diff(at)), [5, 50, 95])


def different(values, size):
    rows = values[: len(values) // size * size].reshape(-1, size)
    return np.mean([len(np.unique(row)) for row in rows])


def spread(classes, size):
    """Standard deviation of a class's share in `size` consecutive samples, over that of random
    samples."""
    n = int(classes.max()) + 1
    rows = classes[: len(classes) // size * size].reshape(-1, size)
    counts = np.stack([np.bincount(row, minlength=n) for row in rows])
    return counts.std() / np.sqrt(size / n * (1 - 1 / n) * (1 - size / len(classes)))


def mix():
    classes = np.repeat(np.arange(1000), 400)
    path = pack_of("sorted.pen", classes, BLOCK)
    lines = [["order", "neighbors apart, 5 %", "50 %", "95 %", "blocks per batch",
              "classes per batch", "spread of classes in a batch", "in 12,288 samples"]]
    for name, order in MIX.items():
        found = order_of(path, 0, 1, **order)
        lines.append([name, *(f"{d:,.0f}" for d in distances(found)),
                      f"{different(found // BLOCK, BATCH):.1f}",
                      f"{different(classes[found], BATCH):.1f}",
                      f"{spread(classes[found], BATCH):.2f}",
                      f"{spread(classes[found], 12288):.2f}"])
    return report.table(lines)


# ---- training --------------------------------------------------------------------------------


def accuracy(path, arrays, seed, epochs, order):
    import torch
    from penstock.lab.training import models
    from torch.nn.functional import cross_entropy

    torch.manual_seed(seed)
    images, labels, tests, answers = arrays
    model = models.make("small", 10, 1)
    sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    batches = len(images) // 128
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, epochs * batches)
    for epoch in range(epochs):
        model.train()
        numbers = order_of(path, epoch, seed, 128, **order)
        for at in range(0, batches * 128, 128):
            part = numbers[at : at + 128]
            loss = cross_entropy(model(images[part]), labels[part])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            rate.step()
    model.eval()
    with torch.no_grad():
        hits = sum(int((model(tests[i : i + 500]).argmax(1) == answers[i : i + 500]).sum())
                   for i in range(0, len(tests), 500))
    return 100 * hits / len(tests)


def train(epochs, seeds):
    import torch
    from penstock.lab.training.accuracy import idx

    arrays = idx.Fashion(idx.FOLDER).arrays
    images, labels = arrays["train"]
    sort = np.argsort(labels, kind="stable")
    def network(pixels):
        return (torch.from_numpy(pixels).unsqueeze(1).float() / 255 - 0.286) / 0.353

    data = (network(images[sort]), torch.from_numpy(labels[sort]).long(),
            network(arrays["test"][0]), torch.from_numpy(arrays["test"][1]).long())
    # As many blocks in the buffer as a pack of photographs has; and far fewer, of the usual size.
    many = pack_of("fashion-7.pen", labels[sort], 7)
    few = pack_of("fashion-32.pen", labels[sort], 32)
    cases = {
        "random": (few, {"order": "random"}),
        "shuffle, 2,688 of 60,000 (384 blocks)": (
            many, {"order": "shuffle", "shuffle_buffer": 2688}),
        "shuffle, 1,536 of 60,000 (48 blocks)": (
            few, {"order": "shuffle", "shuffle_buffer": 1536}),
    }
    found = {name: [] for name in cases}
    for seed in range(seeds):
        for name, (path, order) in cases.items():
            found[name].append(accuracy(path, data, seed, epochs, order))
            say(f"  seed {seed}, {name}: {found[name][-1]:.2f} %")
    lines = [["order", "top-1 %, each seed", "mean", "lowest to highest"]]
    for name, values in found.items():
        lines.append([name, ", ".join(f"{v:.2f}" for v in values), f"{np.mean(values):.2f}",
                      f"{min(values):.2f} to {max(values):.2f}"])
    return report.table(lines)


# ---- picture ---------------------------------------------------------------------------------


def picture():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    path = pack_of("sorted.pen", np.repeat(np.arange(1000), 400), BLOCK)
    shown = 4 * BUFFER
    cases = {'order="sequential"': {"order": "sequential"},
             f"shuffle=True, shuffle_buffer={BUFFER:,}": {
                 "order": "shuffle", "shuffle_buffer": BUFFER},
             'order="random"': {"order": "random"}}
    figure, panels = pyplot.subplots(1, 3, figsize=(10, 3.2), dpi=100, sharey=True)
    for panel, (name, order) in zip(panels, cases.items(), strict=True):
        found = order_of(path, 0, 1, **order)
        at = np.arange(0, shown, 23)
        panel.scatter(at, found[at], s=0.6, color="#1f5fa8", linewidths=0)
        one = found // BLOCK == found[BUFFER * 2] // BLOCK  # the samples of one block
        where = np.flatnonzero(one)
        panel.scatter(where, found[where], s=14, color="#d1495b", linewidths=0, label="one block")
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("position in the epoch", fontsize=8)
        panel.set_xlim(0, shown)
        panel.tick_params(labelsize=7)
    panels[0].set_ylabel("number of the sample in the pack", fontsize=8)
    panels[1].legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    figure.savefig(OUT / "orders.png")
    return f"picture: {OUT / 'orders.png'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["mix", "train", "picture", []])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for what in options.what or ["mix", "train", "picture"]:
        text = {"mix": mix, "picture": picture,
                "train": lambda: train(options.epochs, options.seeds)}[what]()
        print(text, flush=True)
        if what != "picture":
            (OUT / f"{what}.md").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
