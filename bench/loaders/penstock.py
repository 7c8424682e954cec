# SPDX-License-Identifier: Apache-2.0
"""penstock itself, from the build directory's package."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import torch

from loaders.tars import tars_of

PIPELINES = {"train": "decode | random_resized_crop {size} | hflip | tensor u8",
             "validation": "decode | resize {short} | center_crop {size} | tensor u8"}


def pack_of(task, program, work):
    """The pack of this task's files; sample i is file i, and so is its label."""
    modes = {"asis": "keep", "encoded": "encode", "progressive": "keep"}
    mode = task["options"].get("mode") or modes.get(task["stored"], task["stored"])
    more, name = [], f"penstock-{mode}"
    if task["stored"] == "progressive":
        name += "-progressive"
    if task["options"].get("progressive"):
        more += ["--progressive", task["options"]["progressive"]]
        name += f"-{task['options']['progressive']}"
    if not task["options"].get("index", True):
        more.append("--no-index")
    elif mode in ("keep", "encode"):
        name += "-index"
    if mode in ("encode", "raw") and task["max_side"]:
        more += ["--max-side", str(task["max_side"])]
        name += f"-{task['max_side']}"
    if mode == "encode":
        more += ["--quality", str(task["quality"])]
        name += f"-{task['quality']}"
    pack, listing = work / f"{name}.pen", work / "files.csv"
    if not (pack / "manifest").exists():
        rows = [f'"{file}",{i:08}' for i, file in enumerate(task["originals"])]
        listing.write_text("path,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
        subprocess.run([program, "pack", listing, "-o", pack, "--mode", mode, "--order", "source",
                        "--allow-outside", *more], check=True)
    return pack


def pack_of_tars(task, program, work):
    """A pack over the tars of this task, or an ordinary pack of the same samples."""
    index, packed = (work / f"tars-{task['set']}-{kind}.pen" for kind in ("index", "copy"))
    if not (index / "manifest").exists():
        subprocess.run([program, "index", *tars_of(task), "-o", index], check=True)
    if task["options"]["tars"] == "copy" and not (packed / "manifest").exists():
        subprocess.run([program, "copy", index, packed], check=True)
    return {"index": index, "copy": packed}[task["options"]["tars"]]


class Side:
    def __init__(self, task):
        torch.set_num_threads(1)
        sys.path.insert(0, f"{task['build']}/python")
        self.penstock = importlib.import_module("penstock")
        self.task = task
        program = f"{task['build']}/penstock"
        make = pack_of_tars if "tars" in task["options"] else pack_of
        self.pack = make(task, program, pathlib.Path(task["work"]))
        probe = json.loads(subprocess.run([program, "probe", "--json"], check=True,
                                          capture_output=True).stdout)
        self.versions = {"penstock": self.penstock.__version__, "tier": probe["tier"],
                         "torch": torch.__version__}
        self.notes = [f"{name}={os.environ[name]}" for name in ("PENSTOCK_CPU", "PENSTOCK_JPEG")
                      if os.environ.get(name)]
        self.stored = sorted(str(file) for file in self.pack.rglob("*") if file.is_file())
        order = task["options"].get("order")
        self.loader = self.open(task["batch"], PIPELINES[task["transform"]], task["threads"],
                                order=order, shuffle=task["transform"] == "train")

    def open(self, batch, pipeline, threads, **more):
        text = pipeline.format(size=self.task["size"], short=self.task["short"])
        return self.penstock.Loader(self.pack, batch, pipeline=text, threads=threads,
                                    output="torch", return_info=True, **more)

    def epoch(self):
        for _, ids, info in self.loader:
            yield ids if info.n_valid == len(ids) else ids[torch.from_numpy(np.array(info.valid))]

    def check(self):
        """Boxes are not given to this loader: those of the cases are what it draws by itself."""
        ids = [case["id"] for case in self.task["cases"]]
        crops = self.task["check"] == "crops"
        pipeline = "decode | random_resized_crop {size} | tensor u8"
        loader = self.open(len(ids), pipeline if crops else PIPELINES["validation"], 2,
                           subset=ids, order="sequential", seed=self.task["seed"])
        loader.set_epoch(0)
        for images, labels, _ in loader:
            place = {int(n): i for i, n in enumerate(labels)}
            images = images.permute(0, 2, 3, 1).numpy()
            return images[[place[n] for n in ids]].copy()
