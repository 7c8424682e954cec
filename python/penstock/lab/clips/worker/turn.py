#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process of one loader of clips.

    turn.py MODULE          commands and answers are lines of JSON on stdin and stdout

Runs in the environment of the loader, so it uses nothing but the standard library and NumPy.
"""

import importlib
import pathlib
import sys
import time


class Turns:
    def __init__(self, name):
        self.name, self.module = name, None

    def ready(self):
        """Imports the loader, which no turn counts."""
        self.module = importlib.import_module(f"readers.{self.name}")
        return {"versions": self.module.versions()}

    def turn(self, task):
        """An epoch with a training step of `step` seconds for each batch. `data` is how long steps
        waited, `first` the wait of the first one, which includes the start of the loader."""
        waits, samples = [], 0
        began = end = time.perf_counter()
        batches = self.module.batches(task)
        for video in batches:
            waits.append(time.perf_counter() - end)
            samples += len(video)
            if task["step"]:
                time.sleep(task["step"])
            end = time.perf_counter()
        if len(waits) != task["clips"] // task["batch"]:
            raise ValueError(f"expected {task['clips'] // task['batch']} batches, found "
                             f"{len(waits)}")
        return {"seconds": end - began, "samples": samples, "batches": len(waits),
                "first": waits[0], "data": sum(waits)}

    def pixels(self, task):
        """The first batch of an epoch."""
        import numpy as np

        batches = self.module.batches(task)
        found = np.array(next(batches))
        batches.close()
        return found

    def save(self, task, file):
        """The pixels that those of other loaders are compared with."""
        import numpy as np

        np.save(file, self.pixels(task))
        return {}

    def check(self, task, file):
        """Mean and largest difference from the pixels of a file, of 255."""
        import numpy as np

        have, want = self.pixels(task), np.load(file)
        if have.shape != want.shape:
            raise ValueError(f"expected a batch {list(want.shape)}, found {list(have.shape)}")
        apart = np.abs(have - want) * 255
        return {"mean": float(apart.mean()), "max": float(apart.max())}


def main():
    # The folder of this program is in the path; that of the images' loaders has the answers.
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "loaders" / "worker"))
    from answers import serve

    serve(Turns, sys.argv[1])


if __name__ == "__main__":
    main()
