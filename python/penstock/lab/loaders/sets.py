# SPDX-License-Identifier: Apache-2.0
"""The images of a run, and what is made of them once: encoded files, lists, reference pixels."""

from __future__ import annotations

import csv
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

from .. import program
from ..errors import Absent, LabError
from ..experiment import inputs
from ..experiment.lock import lock

CASES, SEED = 48, 7
REFERENCE = "penstock.lab.loaders.reference"
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm"}

# Line breaks, and bytes that are not UTF-8: lists of files have one path a line.
NOT_IN_LISTS = re.compile("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")


def image_files(folder: pathlib.Path, count: int = 0) -> list[pathlib.Path]:
    """The images below a folder, always in one order: the number of one is its id. With a count,
    that many of them, evenly spaced."""
    found = sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)
    if not found:
        raise LabError(f"no images in '{folder}': expected files such as CLASS/NAME.jpg")
    if count and count < len(found):
        found = found[:: len(found) // count][:count]
    return found


def _identity(files: list[pathlib.Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        stat = file.stat()
        digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return f"{len(files)}-{digest.hexdigest()[:12]}"


class Set:
    """Images, in a folder of their own that is named by their names, sizes and times."""

    def __init__(self, files: list[pathlib.Path], work: pathlib.Path, pack: str = ""):
        if not files:
            raise LabError("expected at least one image, found none")
        self.files = [str(file.resolve()) for file in files]
        for name in self.files:
            if NOT_IN_LISTS.search(name):
                raise LabError(f"cannot load {name!r}: expected a path in UTF-8 without line "
                               "breaks. Rename it")
        self.pack = pack
        self.folder = work / "sets" / _identity(files)
        lock(self.folder)

    @classmethod
    def of_source(cls, source: str, work: pathlib.Path, count: int) -> Set:
        """Of a folder of images; or of a pack, whose samples are extracted for other loaders."""
        if not inputs.is_pack(source):
            return cls(image_files(pathlib.Path(source), count), work)
        if count:
            raise LabError(f"count: expected 0 for a pack, found {count}: '{source}' is read as "
                           "it is")
        return cls(cls._extracted(source, work), work, source)

    @staticmethod
    def _extracted(pack: str, work: pathlib.Path) -> list[pathlib.Path]:
        told = inputs.describe(pack)
        out = work / "extracted" / str(told["id"])
        if not out.exists():
            part = out.with_suffix(".part")
            lock(part)
            shutil.rmtree(part)
            program.output("extract", pack, "-o", part)
            part.rename(out)
        with open(out / "samples.csv", newline="", encoding="utf-8") as listed:
            rows = list(csv.reader(listed))[1:]
        files = [out / row[0] for row in rows]
        if len(files) != told["samples"] or not all(file.is_file() for file in files):
            raise LabError(f"'{pack}': expected one image per sample; other packs cannot be "
                           "compared with loaders of images")
        return files

    def listing(self, name: str, files: list[str]) -> str:
        path = self.folder / f"{name}.txt"
        path.write_text("\n".join(files) + "\n", encoding="utf-8")
        return str(path)

    def reference(self, what: str, **request: Any) -> str:
        """By a process of its own: it imports torch where there is one."""
        done = subprocess.run(
            [sys.executable, "-m", REFERENCE, what], input=json.dumps(request), text=True,
            capture_output=True, check=False, env=program.environment())
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise LabError(f"cannot make the pixels to compare with: {said[-1]}. Remove images "
                           "that cannot be decoded")
        return done.stdout

    def encoded(self, max_side: int, quality: int) -> tuple[str, list[str]]:
        """(name, files) of the images encoded anew."""
        name = f"encoded-{max_side}-{quality}"
        out = self.folder / name
        if not (out / "done").exists():
            self.reference("encoded", files=self.files, out=str(out), max_side=max_side,
                           quality=quality)
        return name, [str(file) for file in sorted(out.glob("*.jpg"))]

    def progressive(self) -> list[str]:
        """The images as progressive files with the same pixels."""
        if not shutil.which("jpegtran"):
            raise Absent("needs the program jpegtran, of libjpeg-turbo")
        out = self.folder / "progressive"
        out.mkdir(exist_ok=True)
        files = [out / f"{n:06}.jpg" for n in range(len(self.files))]
        for source, file in zip(self.files, files):
            if not file.exists():
                part = file.with_suffix(".part")
                subprocess.run(["jpegtran", "-progressive", "-copy", "all", "-outfile", part,
                                source], check=True)
                part.rename(file)
        return [str(file) for file in files]

    def cases(self, size: int, short: int) -> list[dict[str, Any]]:
        """Images and boxes for the check of pixels; those of the reference lie beside them."""
        made = self.folder / f"cases-{size}-{short}.json"
        if not made.exists():
            text = self.reference("cases", files=self.files, work=str(self.folder), size=size,
                                  short=short, seed=SEED, count=CASES)
            made.write_text(text, encoding="utf-8")
        found: list[dict[str, Any]] = json.loads(made.read_text(encoding="utf-8"))
        return found

    def task(self, stored: str, max_side: int, quality: int) -> dict[str, Any]:
        """The part of a task that describes the images."""
        name, files, originals = "asis", self.files, self.files
        if stored == "encoded":
            name, files = self.encoded(max_side, quality)
        if stored == "progressive":
            name, files = "progressive", self.progressive()
            originals = files
        return {"stored": stored, "max_side": max_side, "quality": quality, "set": name,
                "work": str(self.folder), "list": self.listing(name, files), "pack": self.pack,
                "originals": originals, "seed": SEED}
