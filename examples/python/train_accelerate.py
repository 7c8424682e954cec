# SPDX-License-Identifier: Apache-2.0
"""Train with Hugging Face Accelerate, stop, and resume with another number of processes.

    torchrun --nproc-per-node 3 examples/python/train_accelerate.py photos.pen --stop-after 7
    torchrun --nproc-per-node 2 examples/python/train_accelerate.py photos.pen

accelerator.save_state includes the loader, because it is registered. Do not pass the loader to
accelerator.prepare: it finds its rank itself. --batch-size is of all processes together.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
import uuid
from typing import Any

import penstock
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from common import Progress, SampleLog, batches_done, elastic_parser, print_start, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


class Steps:
    """Counts steps. A checkpoint has the number, and the name of the run that saved it."""

    def __init__(self, run: str) -> None:
        self.run, self.n = run, 0
        self.resumed: tuple[str, int] | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"run": self.run, "step": self.n}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.n = state["step"]
        self.resumed = state["run"], state["step"]


def make_loader(pack: penstock.Pack, batch_size: int) -> penstock.Loader:
    return penstock.Loader(
        pack,
        batch_size=batch_size,
        shuffle=True,
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.normalize(), ops.tensor("f32")],
        return_info=True,
    )


def restore(accelerator: Accelerator, directory: str) -> None:
    """Load the newest complete checkpoint, if there is one."""
    found = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    complete = [name for name in found if name.startswith("step-")]
    # All processes load the one that the first process has found.
    (name,) = broadcast_object_list([complete[-1] if complete else None])
    if name:
        accelerator.load_state(os.path.join(directory, name))


def save(accelerator: Accelerator, directory: str, step: int) -> None:
    """A checkpoint gets its name when all processes have written their part."""
    new = os.path.join(directory, "new")
    if accelerator.is_main_process:
        shutil.rmtree(new, ignore_errors=True)
    accelerator.wait_for_everyone()
    accelerator.save_state(new)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.replace(new, os.path.join(directory, f"step-{step:08d}"))


def train(args: argparse.Namespace, accelerator: Accelerator) -> None:
    world, rank = accelerator.num_processes, accelerator.process_index
    pack = penstock.open(args.path)
    net = small_net(len(pack.classes))
    model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.01, 0.9))
    loader = make_loader(pack, max(1, args.batch_size // world))
    (run,) = broadcast_object_list([uuid.uuid4().hex])
    steps = Steps(run)
    accelerator.register_for_checkpointing(loader, steps)
    restore(accelerator, args.checkpoints)
    log = SampleLog(args.sample_log, run, rank, world, steps.resumed)
    if accelerator.is_main_process:
        print_start(loader, world)
    for epoch in range(loader.epoch, args.epochs):
        loader.set_epoch(epoch)  # keeps the restored position
        done = batches_done(loader, world)
        progress = Progress(epoch, len(loader), first=done, quiet=rank != 0)
        for image, label, info in loader:
            progress.got_batch()
            steps.n += 1
            # Before the step: when it is saved, every rank has logged it, also one that is killed.
            log.add(steps.n, info)
            scores = model(image)
            # Samples that only pad the last batch have no weight.
            loss = cross_entropy(scores, label, reduction="none")[info.valid].sum() / len(label)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            correct = (scores.argmax(1) == label)[info.valid].sum()
            progress.done_batch(loss.item(), int(correct), info.n_valid)
            if steps.n % args.save_every == 0:
                save(accelerator, args.checkpoints, steps.n)
            if steps.n == args.stop_after:
                return
            time.sleep(args.pause)
    log.done()


def main() -> None:
    options = elastic_parser(__doc__)
    options.add_argument("--checkpoints", default="accelerate")
    options.add_argument("--stop-after", type=int, help="steps; as if it were interrupted")
    args = options.parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    train(args, accelerator)
    accelerator.end_training()


if __name__ == "__main__":
    main()
