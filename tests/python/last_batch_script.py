# SPDX-License-Identifier: Apache-2.0
"""What test_py_last_batch.py runs under torchrun: ranks whose last batches differ, and
of which some have no samples.

    torchrun --nproc-per-node 3 last_batch_script.py PACK OUT

Writes OUT.<rank>: {"sizes": [...], "gathered": [...], "weights": [...], "alone": [...]}.
"""

import json
import sys

import penstock
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

BATCH = 4


def open_loader(path, samples, **settings):
    return penstock.Loader(path, BATCH, subset=range(samples), return_info=True,
                           pipeline={"image": "decode | center_crop 8 | normalize | tensor f32",
                                     "label": "tensor"}, **settings)


def new_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(),
                               torch.nn.Linear(4 * 6 * 6, 3))


def gather(values):
    """Those of all ranks, whose numbers differ."""
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(values)]))
    most = max(int(n) for n in counts)
    padded = torch.nn.functional.pad(values, (0, most - len(values)))
    parts = [torch.zeros(most, dtype=values.dtype) for _ in counts]
    dist.all_gather(parts, padded)
    return [int(n) for n in counts], torch.cat([part[:n] for part, n in zip(parts, counts)])


def main():
    path, out = sys.argv[1:]
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    model = DistributedDataParallel(new_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    record = {"sizes": [], "gathered": []}
    samples = BATCH * ranks + 1
    for image, label, info in open_loader(path, samples, last_batch="short"):
        counts, numbers = gather(info.samples)
        # The gradients are averaged over the ranks: a sum, divided by the number of all samples.
        loss = cross_entropy(model(image), label, reduction="sum") * ranks / sum(counts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record["sizes"].append(counts)
        record["gathered"].append(sorted(numbers.tolist()))
    record["weights"] = [float(p.detach().sum()) for p in model.parameters()]
    alone = new_model()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    with open_loader(path, samples, rank=0, world_size=1) as loader:
        image, label = (torch.cat(part) for part in zip(*[
            (batch.image.clone(), batch.label.clone()) for batch in loader]))
    for part in (slice(0, BATCH * ranks), slice(BATCH * ranks, None)):
        optimizer.zero_grad()
        cross_entropy(alone(image[part]), label[part]).backward()
        optimizer.step()
    record["alone"] = [float(p.detach().sum()) for p in alone.parameters()]
    with open(f"{out}.{dist.get_rank()}", "w") as text:
        json.dump(record, text)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
