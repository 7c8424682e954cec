# SPDX-License-Identifier: Apache-2.0
"""The identity of what an experiment reads."""

from __future__ import annotations

import hashlib
import os
import pathlib
from typing import Any

from .. import program
from ..errors import LabError


def is_pack(path: str | os.PathLike[str]) -> bool:
    """A pack, at a path or a URL; not a folder of images."""
    text = os.fspath(path)
    return "://" in text or (pathlib.Path(text) / "manifest").is_file()


def _pack(path: str) -> dict[str, Any]:
    told = program.output_json("info", path, "--json")
    size = told["bytes"]["pack"]
    return {"path": path, "id": told["id"], "samples": told["samples"], "bytes": size}


def _folder(path: pathlib.Path) -> dict[str, Any]:
    """The identity is a hash of names and sizes."""
    digest, total, count = hashlib.sha256(), 0, 0
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.relative_to(path)}\0{size}\0".encode("utf-8", "surrogateescape"))
        total, count = total + size, count + 1
    return {"path": str(path), "id": digest.hexdigest()[:32], "samples": count, "bytes": total}


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Path, id, samples and bytes of a pack, a folder of files or one file."""
    if is_pack(path):
        return _pack(os.fspath(path))
    place = pathlib.Path(path)
    if not place.exists():
        raise LabError(f"cannot read '{path}': there is no such pack, folder or file")
    return _folder(place.resolve())


def on_disk(folder: str | os.PathLike[str]) -> dict[str, int]:
    """Bytes of the files, and of the blocks that the file system uses for files and folders."""
    found = {"bytes": 0, "blocks": 0, "folder_blocks": 0, "files": 0}
    for where, _, names in os.walk(folder):
        found["folder_blocks"] += os.stat(where).st_blocks * 512
        for name in names:
            state = os.stat(os.path.join(where, name))
            found["bytes"] += state.st_size
            found["blocks"] += state.st_blocks * 512
            found["files"] += 1
    return found
