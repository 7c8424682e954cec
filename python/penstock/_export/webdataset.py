# SPDX-License-Identifier: Apache-2.0
"""Tar files for WebDataset, with the suffixes that it decodes and `penstock convert` reads."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from .._convert import _npy
from .._convert.webdataset import KINDS
from .._error import InvalidError, NotFoundError
from .._pack import Field, Pack, shape_of
from ._folder import Folder

CLASSES_NAME = "classes.json"
_IMAGES = (".jpg", ".jpeg", ".png", ".webp")
_INTEGERS = ("cls2", "index", "inx", "id")  # suffixes that WebDataset decodes to an int
_BLOCK = 512
# What a name in a tar cannot have, or what is not safe there.
_BYTES = re.compile(r"[%\x00-\x1f\x7f\udc80-\udcff]")
_EMPTY_PART = re.compile(r"^/|/(?=/|$)")
_DOTS = re.compile(r"(?:^|(?<=/))\.{1,2}(?=/|$)")


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def escaped(key: str) -> str:
    """The key as the name of a sample. WebDataset splits names at the first dot after the last
    slash, so dots become %2E there. urllib.parse.unquote restores the key."""
    name = _EMPTY_PART.sub(_percent, _BYTES.sub(_percent, key))
    folder, slash, base = name.rpartition("/")
    name = _DOTS.sub(_percent, folder) + slash + base.replace(".", "%2E")
    return f"%5F{name[1:]}" if name.startswith("__") else name  # reserved by WebDataset


def _suffix(field: Field, is_class: bool) -> str:
    """The suffix of a field. Those of images are added later."""
    name = _BYTES.sub(_percent, field.name).replace("/", "%2F")
    if field.type in ("image", "clip"):
        return "" if name == "image" else name
    if field.type == "bytes":
        return f"{name}.bin" if name.rpartition(".")[2].lower() in KINDS else name
    if field.type in ("text", "json"):
        last = "txt" if field.type == "text" else "json"
        return last if name == field.type else f"{name}.{last}"
    if is_class:
        return "cls" if name == "label" else f"{name}.cls"
    if str(field) == "i64" and name in _INTEGERS:
        return name
    return name if name == "npy" else f"{name}.npy"


class _Names:
    """The names of samples. The suffix of the first key, such as .jpg, is left out of all keys."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        end = os.path.splitext(pack.key(0))[1] if len(pack) else ""
        has_image = any(field.type == "image" for field in pack.fields)
        self._end = end if has_image and end.lower() in _IMAGES else ""

    def __call__(self, number: int) -> str:
        key = self._pack.key(number)
        if self._end and key.endswith(self._end):
            return escaped(key[: -len(self._end)])
        if self._end and self._has(key + self._end):
            raise InvalidError(
                f"its key {key!r} and the key {key + self._end!r} become the same name in "
                "WebDataset"
            )
        return escaped(key)

    def _has(self, key: str) -> bool:
        try:
            self._pack.index(key)
        except NotFoundError:
            return False
        return True


class Tars:
    def __init__(self, pack: Pack, folder: Folder, shard_bytes: int) -> None:
        self._pack, self._core, self._folder = pack, pack._core, folder
        self._limit = shard_bytes
        self._names = _Names(pack)
        self._suffixes = [_suffix(field, field.name == pack.class_field) for field in pack.fields]
        self._number = self._size = self.n_bytes = 0
        self._file = self._create()

    def _create(self) -> BinaryIO:
        return self._folder.create(f"samples-{self._number:06d}.tar")

    def add(self, number: int) -> None:
        name = self._names(number)
        pieces, suffixes = [], set()
        for i, field in enumerate(self._pack.fields):
            for suffix, content in self._members(number, i, field):
                if suffix.lower() in suffixes:
                    raise InvalidError(f"two fields become the same member, .{suffix}")
                suffixes.add(suffix.lower())
                pieces += _member(f"{name}.{suffix}", content)
        if not pieces:
            raise InvalidError("it has no value, and WebDataset cannot store such samples")
        self._write(pieces)

    def _write(self, pieces: list[bytes]) -> None:
        n_bytes = sum(map(len, pieces))
        if self._size and self._size + n_bytes > self._limit:
            self._finish()
            self._number += 1
            self._size, self._file = 0, self._create()
        self._file.writelines(pieces)
        self._size += n_bytes
        self.n_bytes += n_bytes

    def _finish(self) -> None:
        self._file.write(bytes(2 * _BLOCK))
        self._folder.finish(self._file)

    def _members(self, number: int, i: int, field: Field) -> Iterator[tuple[str, bytes]]:
        """Suffix and content. A missing value has no member, and a clip has one for each frame."""
        stem = self._suffixes[i]
        if field.type == "clip":
            for frame in range(self._core.frame_count(number, i)):
                yield self._image(number, i, frame, f"{stem}.{frame + 1:05d}".lstrip("."))
        elif self._core.missing(number, i):
            return
        elif field.type == "image":
            yield self._image(number, i, 0, stem)
        else:
            yield stem, _content(field, stem, self._core.read(number, i))

    def _image(self, number: int, i: int, frame: int, stem: str) -> tuple[str, bytes]:
        content, end = self._core.extract(number, i, frame)
        return (stem + (end or ".bin")).lstrip("."), content

    def close(self) -> None:
        self._finish()
        if self._pack.classes:
            file = self._folder.create(CLASSES_NAME)
            file.write(json.dumps(self._pack.classes, indent=1).encode() + b"\n")
            self._folder.finish(file)


def _content(field: Field, suffix: str, data: bytes) -> bytes:
    if field.type in ("bytes", "text", "json"):
        return data
    if suffix.endswith(".npy") or suffix == "npy":
        return _npy.dump(field.type, shape_of(field, data), data)
    return b"%d" % int.from_bytes(data, "little", signed=True)


def _member(name: str, content: bytes) -> list[bytes]:
    """A file of a tar: header, content, and zeros up to the next block. Times and owners are 0."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    return [header, content, bytes(-len(content) % _BLOCK)]
