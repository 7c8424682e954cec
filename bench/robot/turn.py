# SPDX-License-Identifier: Apache-2.0
"""The process of one loader of a LeRobot dataset.

    turn.py MODULE          commands and answers are lines of JSON on stdin and stdout

MODULE is `ours`, in the environment of penstock, or `theirs`, in that of lerobot. It has
versions() and Loader(task), with close() and batches(epoch): dicts of tensors. A task has address,
backend, deltas (seconds), batch, threads, samples (of a turn; 0: an epoch) and seed.
"""

import importlib
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Turns:
    def __init__(self, name):
        self.module = importlib.import_module(name)
        self.loader = self.task = None

    def open(self, task):
        """For all turns: what opening takes is not counted."""
        self.task, self.loader = task, self.module.Loader(task)
        return {"versions": self.module.versions()}

    def turn(self, epoch):
        samples, sizes = 0, {}
        began = time.perf_counter()
        for batch in self.loader.batches(epoch):
            for name in self.task["deltas"]:
                sizes[name] = batch[name][0].numel()
            samples += len(batch["action"])
        seconds = time.perf_counter() - began
        frames = samples * sum(len(deltas) for name, deltas in self.task["deltas"].items()
                               if "images" in name)
        return {"seconds": seconds, "samples": samples, "frames": frames, "sizes": sizes}


def main():
    sys.path.append(str(HERE.parents[1] / "python/penstock/lab/loaders/worker"))
    from answers import serve

    serve(Turns, sys.argv[1])


if __name__ == "__main__":
    main()
