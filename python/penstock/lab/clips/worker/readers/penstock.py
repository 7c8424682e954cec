# SPDX-License-Identifier: Apache-2.0
"""penstock itself, of the environment that penstock-lab runs in."""

import penstock

try:
    import torch
except ImportError:
    torch = None


def versions():
    return {"penstock": penstock.__version__, **({"torch": torch.__version__} if torch else {})}


def batches(task):
    place = "center" if task["center"] else "random"
    loader = penstock.Loader(
        f"{task['root']}/clips.pen", task["batch"], drop_last=True, threads=task["threads"],
        order="shuffle" if task["shuffle"] else "sequential", subset=range(task["clips"]),
        output="torch" if torch else "numpy",
        pipeline=f"decode | clip {task['frames']} {task['stride']} {place} | "
                 f"center_crop {task['size']} | tensor f32 ncthw")
    with loader:
        for video, *_ in loader:
            yield video
