# SPDX-License-Identifier: Apache-2.0
"""penstock itself, of the environment that penstock-lab runs in."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

import penstock

from .tars import tars_of

try:
    import torch
except ImportError:
    torch = None

PROGRAM = [sys.executable, "-m", "penstock"]

PIPELINES = {"train": "decode | random_resized_crop {size} | hflip | tensor u8",
             "validation": "decode | resize {short} | center_crop {size} | tensor u8"}


def pack_of(task, work):
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
        subprocess.run([*PROGRAM, "pack", listing, "-o", pack, "--mode", mode, "--order", "source",
                        "--allow-outside", *more], check=True)
    return pack


def pack_of_tars(task, work):
    """A pack over the tars of this task, or an ordinary pack of the same samples."""
    index, packed = (work / f"tars-{task['set']}-{kind}.pen" for kind in ("index", "copy"))
    if not (index / "manifest").exists():
        subprocess.run([*PROGRAM, "index", *tars_of(task), "-o", index], check=True)
    if task["options"]["tars"] == "copy" and not (packed / "manifest").exists():
        subprocess.run([*PROGRAM, "copy", index, packed], check=True)
    return {"index": index, "copy": packed}[task["options"]["tars"]]


class Side:
    def __init__(self, task):
        if torch:
            torch.set_num_threads(1)
        self.task = task
        make = pack_of_tars if "tars" in task["options"] else pack_of
        given = task.get("pack")  # the labels of a given pack are no numbers of samples
        self.pack = given or make(task, pathlib.Path(task["work"]))
        self.labels_are_ids = not given
        build = json.loads(subprocess.run([*PROGRAM, "--version", "--json"], check=True,
                                          capture_output=True).stdout)
        self.versions = {"penstock": penstock.__version__, "tier": build["tier"]}
        if torch:
            self.versions["torch"] = torch.__version__
        self.notes = [f"{name}={os.environ[name]}" for name in ("PENSTOCK_CPU", "PENSTOCK_JPEG")
                      if os.environ.get(name)]
        local = () if "://" in str(self.pack) else pathlib.Path(self.pack).rglob("*")
        self.stored = sorted(str(file) for file in local if file.is_file())
        self.remote, self.loader = "addresses" in task, None
        if not self.remote:
            self.loader = self.training()

    def training(self):
        task = self.task
        return self.open(task["batch"], PIPELINES[task["transform"]], task["threads"],
                         order=task["options"].get("order"), shuffle=task["transform"] == "train")

    def restart(self):
        """Of a store, a new loader: the memory of the one before it has blocks."""
        if self.remote:
            self.close()
            self.loader = self.training()

    def close(self):
        if self.loader:
            self.loader.close()

    def open(self, batch, pipeline, threads, **more):
        text = pipeline.format(size=self.task["size"], short=self.task["short"])
        if self.task["options"].get("memory"):
            more["memory"] = self.task["options"]["memory"]
        return penstock.Loader(self.pack, batch, pipeline=text, threads=threads,
                               output="torch" if torch else "numpy", return_info=True, **more)

    def epoch(self):
        self.restart()
        for _, labels, info in self.loader:
            ids = labels if self.labels_are_ids else info.samples
            yield np.asarray(ids)[np.asarray(info.valid, bool)]

    def bottleneck(self):
        return self.loader.stats()["epoch"]["bottleneck"]

    def check(self):
        """Boxes are not given to this loader: those of the cases are what it draws by itself."""
        ids = [case["id"] for case in self.task["cases"]]
        crops = self.task["check"] == "crops"
        pipeline = "decode | random_resized_crop {size} | tensor u8"
        loader = self.open(len(ids), pipeline if crops else PIPELINES["validation"], 2,
                           subset=ids, order="sequential", seed=self.task["seed"])
        loader.set_epoch(0)
        for images, _, info in loader:
            place = {int(n): i for i, n in enumerate(info.samples)}
            images = images.permute(0, 2, 3, 1).numpy() if torch else images
            return images[[place[n] for n in ids]].copy()
