# SPDX-License-Identifier: Apache-2.0
"""Folders of images, one directory per class, packed with several encodings."""

from __future__ import annotations

import pathlib

from ... import program
from ...errors import LabError
from .encodings import options


class Folders:
    """The training images and the test images."""

    def __init__(self, train: str, test: str) -> None:
        self.places = {"train": train, "test": test}
        for place in self.places.values():
            if not pathlib.Path(place).is_dir():
                raise LabError(f"cannot read '{place}': expected a folder with a directory of "
                               "images for each class")

    def write(self, split: str, name: str, path: pathlib.Path) -> None:
        """Interrupted, it resumes after the last complete shard."""
        flags = []
        for flag, value in options(name).items():
            if flag == "index":
                flags += ["--no-index"]
            elif value:
                flags += [f"--{flag.replace('_', '-')}", str(value)]
        if split == "test":  # the classes have the numbers of training
            train = path.with_name(f"train-{name}.pen")
            if not (train / "manifest").exists():
                self.write("train", name, train)
            flags += ["--classes-from", str(train)]
        program.output("pack", self.places[split], "-o", str(path), *flags)
