# SPDX-License-Identifier: Apache-2.0
"""What test_py_distributed.py runs under torchrun: a real model that trains on every rank, and a
record of what each rank was given.

    torchrun --nproc-per-node 2 ddp_script.py PACK STATE OUT

Trains one epoch, then restores STATE (json) and trains what is left of its epoch; writes
OUT.<rank>: {"whole": [...], "rest": [...], "state": {...}, "weights": "sha-256"}.
"""

import hashlib
import json
import sys

import penstock
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def train(loader, model, optimizer):
    """The valid sample numbers of each step; the state after the second one too."""
    steps, state = [], None
    for image, label, info in loader:
        loss = cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps.append(info.samples[info.valid].tolist())
        if len(steps) == 2:
            state = loader.state_dict()
    return steps, state


def main():
    path, state, out = sys.argv[1:]
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())  # DistributedDataParallel has to make them equal
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(8 * 7 * 7, 3),
    )
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = penstock.Loader(
        path, 4, shuffle=True, seed=7, return_info=True,
        pipeline="decode | random_resized_crop 16 | hflip | normalize | tensor f32",
    )
    assert (loader.rank, loader.world_size) == (dist.get_rank(), dist.get_world_size())
    whole, middle = train(loader, model, optimizer)
    with open(state) as text:
        loader.load_state_dict(json.load(text))
    rest, _ = train(loader, model, optimizer)
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    with open(f"{out}.{dist.get_rank()}", "w") as record:
        json.dump(
            {"whole": whole, "rest": rest, "state": middle, "weights": digest.hexdigest()}, record
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
