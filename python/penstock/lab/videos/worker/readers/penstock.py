# SPDX-License-Identifier: Apache-2.0
"""penstock itself, of the environment that penstock-lab runs in."""

import penstock


def versions():
    return {"penstock": penstock.__version__}


class Reader:
    def __init__(self, task):
        place = "center" if task["center"] else "random"
        numbers = [i % len(task["names"]) for i in range(task["clips"])]
        self.pack = penstock.open(task["address"])
        self.loader = penstock.Loader(
            self.pack, task["batch"], order="sequential", subset=numbers, drop_last=True,
            threads=task["threads"], output="numpy",
            pipeline=f"decode | clip {task['frames']} {task['stride']} {place} | "
                     f"center_crop {task['crop']} | resize {task['size']},{task['size']} | "
                     "tensor u8 ncthw")

    def batches(self, epoch):
        self.loader.set_epoch(epoch)
        for video, *_ in self.loader:
            yield video

    @property
    def bytes(self):
        return self.pack.remote_stats()["bytes"] or None

    def close(self):
        self.loader.close()
        self.pack.close()
