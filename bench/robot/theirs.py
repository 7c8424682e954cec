# SPDX-License-Identifier: Apache-2.0
"""DataLoader over LeRobotDataset, with worker processes that stay for all turns."""

import lerobot_package
import torch


def versions():
    return lerobot_package.versions()


class Loader:
    def __init__(self, task):
        dataset = lerobot_package.opened(task["address"], task["deltas"], task["backend"])
        order = torch.utils.data.RandomSampler(dataset, num_samples=task["samples"] or None)
        self.batch_loader = torch.utils.data.DataLoader(
            dataset, task["batch"], sampler=order, num_workers=task["threads"],
            persistent_workers=True, drop_last=True)

    def batches(self, _epoch):
        return iter(self.batch_loader)
