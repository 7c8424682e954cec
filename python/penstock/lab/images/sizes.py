# SPDX-License-Identifier: Apache-2.0
"""How many bytes a dataset takes in other qualities and sizes, and what is lost."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import time
from collections.abc import Callable
from typing import Any

from .. import program
from ..errors import LabError
from ..experiment import inputs, parameters
from ..experiment.question import Arm, Cell, Question
from . import estimate, fidelity, sampling
from .fidelity import Pixels
from .population import Item, open_source, with_detail

ENCODINGS = ("jpeg50", "jpeg90", "jpeg100", "webp50", "webp80", "webp90", "mix90", "smart90", "raw")
SIDES = (256, 384, 512, 0)
RAW_SHARE, SMART_THRESHOLD = 0.25, 65536  # defaults of 'penstock pack'
COLUMNS = 16  # bytes of an image beside its metadata
MOST_DECODED = 20000  # images of which the detail is measured: 3 ms of CPU time each


@dataclasses.dataclass(frozen=True)
class Parameters(parameters.Base):
    rounds: int = parameters.option(1, "how often each cell is packed", short="r")
    source: str = parameters.option("", "a folder of images, or a pack", positional=True)
    encodings: tuple[str, ...] = parameters.option(
        ENCODINGS, "jpegQ, webpQ, mixQ (a quarter raw, the rest JPEG), smartQ (small images raw) "
        "or raw; Q is the quality", short="e")
    sides: tuple[int, ...] = parameters.option(SIDES, "longest side in pixels; 0: as it is",
                                               short="s")
    sample: int = parameters.option(400, "images to pack; the sizes of all are estimated from "
                                    "them", short="n")
    exact: bool = parameters.option(False, "pack all images")
    fidelity: int = parameters.option(32, "images of the sample to compare with the original",
                                      short="f")
    seed: int = parameters.option(0, "chooses the sample")


def words(encoding: str, side: int) -> list[str]:
    """The options of 'penstock pack' for an encoding."""
    if encoding == "raw":
        return ["--mode", "raw", *_side_words(side)]
    found = re.fullmatch(r"(jpeg|webp|mix|smart)(\d{1,3})", encoding)
    if not found or not 1 <= int(found[2]) <= 100:
        raise LabError(f"encodings: expected jpegQ, webpQ, mixQ, smartQ or raw with a quality Q "
                       f"from 1 to 100, found '{encoding}'")
    kind, quality = found[1], found[2]
    mode = kind if kind in ("mix", "smart") else "encode"
    made = ["--mode", mode, *_side_words(side)]
    if mode != "mix" or side:
        made += ["--quality", quality]
    return [*made, "--codec", "webp"] if kind == "webp" else made


def _side_words(side: int) -> list[str]:
    return ["--max-side", str(side)] if side else []


def check(chosen: Parameters) -> None:
    if not chosen.source:
        raise LabError("expected a folder of images or a pack: penstock-lab sizes photos/")
    for encoding in chosen.encodings:
        words(encoding, 0)
    for name in ("sample", "fidelity"):
        if getattr(chosen, name) < 0:
            raise LabError(f"{name}: expected at least 0, found {getattr(chosen, name)}")
    if not chosen.encodings or not chosen.sides or min(chosen.sides) < 0:
        raise LabError("expected at least one encoding, and sides of 0 or more pixels")


def is_raw(item: Item, encoding: str, side: int) -> bool:
    """Whether 'penstock pack' stores this image raw. In mode mix, a hash of the key decides."""
    if encoding.startswith("mix"):
        digest = hashlib.sha256(b"penstock mix" + os.fsencode(item.key)).digest()
        return (int.from_bytes(digest[:8], "little") >> 11) * 2.0**-53 < RAW_SHARE
    if encoding.startswith("smart"):
        width, height = estimate.resized(item, side)
        return width * height * item.channels <= SMART_THRESHOLD
    return encoding == "raw"


class Packed:
    """A pack of the sample: how long it took, and how many bytes each image has."""

    def __init__(self, path: pathlib.Path, lists: pathlib.Path, root: pathlib.Path,
                 options: list[str]) -> None:
        shutil.rmtree(path, ignore_errors=True)
        began, used = time.monotonic(), program.child_seconds()
        told = program.output_json("pack", lists, "-o", path, "--root", root, "--order", "source",
                                   "--on-bad", "skip", "--max-bad", "1000000000", "--json",
                                   *options)
        self.seconds, self.cpu = time.monotonic() - began, program.child_seconds() - used
        self.path = path
        self.bytes: dict[str, int] = told["bytes"]
        rows = program.output("info", path, "--samples", "--json").splitlines()
        self.images: dict[str, int] = {}
        for row in map(json.loads, rows):
            self.images[row["key"]] = row["fields"]["image"]["bytes"]

    def pixels(self, keys: list[str]) -> list[Pixels]:
        import numpy as np
        from PIL import Image

        import penstock

        found = []
        with penstock.open(self.path) as pack:
            for key in keys:
                data = pack.extract(pack.index(key), "image")
                with Image.open(io.BytesIO(data)) as opened:
                    found.append(np.asarray(opened.convert("RGB")))
        return found


class _Cell(Arm):
    def __init__(self, asked: Sizes, cell: Cell) -> None:
        self.asked, self.cell = asked, cell

    def turn(self, number: int) -> dict[str, Any]:
        asked, side, encoding = self.asked, int(self.cell["side"]), str(self.cell["encoding"])
        packed = asked.pack(encoding, side)
        drawn = [one for one in asked.drawn if one.item.key in packed.images]
        if not drawn:
            raise LabError(f"'{asked.parameters.source}': no image could be packed")
        total, seconds = asked.estimate(packed, drawn, encoding, side)
        figures = {
            "seconds": packed.seconds, "samples": len(drawn), "cpu": packed.cpu,
            "pack_bytes": packed.bytes["pack"], "bytes": total.value, "low": total.low,
            "high": total.high, "pack_seconds": seconds, **asked.compare(packed, side),
        }
        shutil.rmtree(packed.path, ignore_errors=True)
        return figures


class Sizes(Question):
    """Encodings and sides. Cells of one side follow each other."""

    warm_up = False

    def __init__(self, chosen: Parameters, folder: pathlib.Path) -> None:
        check(chosen)
        self.parameters, self.work = chosen, folder / "packs"
        self.source = open_source(chosen.source)
        self._items: list[Item] | None = None
        self._originals: tuple[int, dict[str, Pixels]] | None = None

    def inputs(self) -> list[dict[str, Any]]:
        return [inputs.describe(self.parameters.source)]

    def groups(self) -> list[list[Cell]]:
        return [[{"encoding": encoding, "side": side} for encoding in self.parameters.encodings]
                for side in self.parameters.sides]

    def open(self, cell: Cell) -> Arm:
        self.start()
        return _Cell(self, cell)

    def start(self) -> None:
        """Read the headers of all images and choose the sample, once."""
        if self._items is not None:
            return
        self.items = self.dataset = self._items = self.source.items()
        if not self.items:
            raise LabError(f"'{self.parameters.source}': expected images, found none")
        n, seed = self.parameters.sample, self.parameters.seed
        if self.parameters.exact or not 0 < n < len(self.items):
            self.drawn = [sampling.Drawn(item, 1.0) for item in self.items]
        else:
            self.items = with_detail(self.source, sampling.evenly(self.dataset, MOST_DECODED, seed))
            self.drawn = sampling.by_extent(self.items, n, seed)
        self.work.mkdir(parents=True, exist_ok=True)
        self.root = self.source.root([one.item for one in self.drawn], self.work)
        self.lists = self.work / "sample.csv"
        with open(self.lists, "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            rows = csv.writer(file)
            rows.writerow(["path"])
            rows.writerows([one.item.key] for one in self.drawn)

    def estimate(self, packed: Packed, drawn: list[sampling.Drawn], encoding: str,
                 side: int) -> tuple[estimate.Total, float]:
        """Of a pack of all images: its bytes, and the seconds that it takes to write."""
        def raw(item: Item) -> bool:
            return is_raw(item, encoding, side)

        def share(measure: Callable[[Item], float]) -> float:
            """What all images have of it, divided by what the packed ones have."""
            return sum(map(measure, self.dataset)) / sum(measure(one.item) for one in drawn)

        if len(self.drawn) == len(self.dataset):  # those that are not in the pack are broken
            whole = float(packed.bytes["pack"])
            return estimate.Total(whole, whole, whole), packed.seconds
        payload = [float(packed.images[one.item.key]) for one in drawn]
        images = estimate.in_groups(self.items, drawn, payload, side, raw)
        images = estimate.expanded(images, self.items, drawn, payload, self.dataset)
        parts, count = packed.bytes, share(lambda item: 1)
        metadata = share(lambda item: COLUMNS + (0 if raw(item) else item.metadata))
        rows = share(lambda item: 0.01 + (not raw(item)) * estimate.resized(item, side)[1])
        more = (parts["tables"] * count + parts["metadata"] * metadata + parts["index"] * rows)
        return (estimate.Total(*(value + more for value in images)),
                packed.seconds * share(lambda item: item.pixels))

    def pack(self, encoding: str, side: int) -> Packed:
        return Packed(self.work / f"{encoding}-{side}.pen", self.lists, self.root,
                      words(encoding, side))

    def originals(self, side: int) -> dict[str, Pixels]:
        """Pixels of some images, resized but not encoded: what the others are compared with."""
        if self._originals is None or self._originals[0] != side:
            n, size = self.parameters.fidelity, len(self.drawn)
            step = max(1, size // max(n, 1))
            keys = [one.item.key for one in self.drawn[::step][:n]]
            lists = self.work / "originals.csv"
            with open(lists, "w", newline="", encoding="utf-8",
                      errors="surrogateescape") as file:
                csv.writer(file).writerows([["path"], *([key] for key in keys)])
            raw = Packed(self.work / "originals.pen", lists, self.root, words("raw", side))
            keys = [key for key in keys if key in raw.images]
            self._originals = side, dict(zip(keys, raw.pixels(keys)))
            shutil.rmtree(raw.path, ignore_errors=True)
        return self._originals[1]

    def compare(self, packed: Packed, side: int) -> dict[str, Any]:
        """PSNR of the mean squared error of all images, and the mean SSIM. PSNR is None if
        nothing is lost."""
        originals = self.originals(side) if self.parameters.fidelity else {}
        keys = [key for key in originals if key in packed.images]
        if not keys:
            return {}
        pairs = list(zip((originals[key] for key in keys), packed.pixels(keys)))
        chances = {one.item.key: one.chance for one in self.drawn}
        weights = [1 / chances[key] for key in keys]

        def mean(measure: Callable[[Pixels, Pixels], float]) -> float:
            return sum(w * measure(a, b) for w, (a, b) in zip(weights, pairs)) / sum(weights)

        error = mean(fidelity.mse)
        return {"compared": len(pairs), "psnr": fidelity.psnr(error) if error else None,
                "ssim": mean(fidelity.ssim)}

    def close(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
