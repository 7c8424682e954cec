# SPDX-License-Identifier: Apache-2.0
"""penstock, with frames as samples."""

import penstock
import penstock.lerobot
import torch


def versions():
    return {"penstock": penstock.__version__, "torch": torch.__version__}


class Loader:
    def __init__(self, task):
        requests = task["requests"]
        pack = penstock.open(task["address"],
                             storage_options={"in_flight": requests} if requests else None)
        height, width = task["size"]
        images = f"center_crop {height},{width} | tensor f32 ntchw"
        self.loader = penstock.Loader(
            pack, task["batch"], order="random", frames="length", threads=task["threads"],
            pipeline=penstock.lerobot.windows(pack, task["deltas"], images), drop_last=True,
            output="torch", seed=task["seed"], io_threads=requests)

    def batches(self, epoch):
        self.loader.set_epoch(epoch)
        for values in self.loader:
            yield dict(zip(self.loader.fields, values))
