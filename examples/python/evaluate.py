# SPDX-License-Identifier: Apache-2.0
"""Evaluate exactly: every sample counts once, on any number of processes.

    python3 examples/python/train.py photos.pen --save model.pt
    python3 examples/python/evaluate.py photos.pen --model model.pt
    torchrun --nproc-per-node 2 examples/python/evaluate.py photos.pen --model model.pt

The loader does not shuffle, so the samples of the last step are divided among the ranks, and none
is repeated. A rank can have no samples in it: losses are summed, and divided once at the end.
"""

from __future__ import annotations

import os

import penstock
import torch
import torch.distributed as dist
from common import parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


@torch.inference_mode()
def evaluate(loader: penstock.Loader, model: torch.nn.Module) -> torch.Tensor:
    """Sums over the samples of this rank: loss, right answers, samples."""
    sums = torch.zeros(3, dtype=torch.float64)
    for image, label in loader:
        scores = model(image)
        loss = cross_entropy(scores, label, reduction="sum")
        correct = (scores.argmax(1) == label).sum()
        sums += torch.tensor([float(loss), int(correct), len(label)], dtype=torch.float64)
    return sums


def main() -> None:
    options = parser(__doc__, epochs=False)
    options.add_argument("--model", help="what train.py --save has written")
    args = options.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    pack = penstock.open(args.path)
    loader = penstock.Loader(
        pack,
        args.batch_size,
        pipeline=[
            ops.decode(),
            ops.resize(72),
            ops.center_crop(64),
            ops.normalize(),
            ops.tensor("f32"),
        ],
    )
    model = small_net(len(pack.classes)).eval()
    if args.model:
        model.load_state_dict(torch.load(args.model, weights_only=True))
    sums = evaluate(loader, model)
    if dist.is_initialized():
        dist.all_reduce(sums)
    loss, correct, n = sums.tolist()
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(f"Loss {loss / n:.4f}  Prec@1 {100 * correct / n:.2f}  ({correct:.0f} of {n:.0f})")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
