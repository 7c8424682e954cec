# SPDX-License-Identifier: Apache-2.0
"""Tar files as WebDataset writes them. Neighbors with the same name up to the first dot are the
members of a sample. Fields have the names that `penstock pack` gives them. A tar file is a part."""

from __future__ import annotations

import builtins
import glob
import gzip
import json
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _check
from .._error import Error, InvalidError, NotFoundError, ReadWriteError
from . import _columns, _npy
from ._binary import refuse_pipe
from ._reader import Choice

SUFFIXES = (".tar", ".tar.gz", ".tgz")
MEMBER_BYTES = 1 << 30
READ_BYTES = 1 << 20  # pieces in which a member is read: its size could be wrong
RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
RANGE_FILES = 1_000_000
SAMPLE_BYTES, FIELDS = 2 << 30, 256  # a pack has at most as many fields
META = re.compile(r"__[^/]*__($|/)")  # names that WebDataset reserves
NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")
_MALFORMED = (tarfile.TarError, zlib.error, EOFError, ValueError, MemoryError, RecursionError)
Sample = dict[str, tuple[str, bytes]]  # field to suffix and content
# The last part of a suffix to the type, and to the name of the field if it is the entire suffix.
KINDS = {
    **dict.fromkeys(("jpg", "jpeg", "png", "webp"), ("image", "image")),
    **dict.fromkeys(("json", "jsn"), ("json?", "json")),
    **dict.fromkeys(("txt", "text", "transcript"), ("text?", "text")),
    **{name: ("i64", name) for name in NUMBERS},
    "cls": ("i64", "label"),
    "npy": ("npy", "npy"),
}


def recognise(source: str) -> bool:
    return source.endswith(SUFFIXES) or bool(os.path.isdir(source) and _below(source))


def open(source: str, choice: Choice) -> TarReader:
    return TarReader(source, choice)


def _below(folder: str) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(folder)}/*.tar"))


def _files_of(source: str) -> list[str]:
    """The files of a path, a folder, or a pattern with * or {000..017}."""
    match = RANGE.search(source)
    if os.path.isdir(source):
        found = _below(source)
    elif os.path.exists(source) or not match:
        found = [source] if os.path.exists(source) else sorted(glob.glob(source))
    else:
        numbers = range(int(match[1]), int(match[2]) + 1)
        if len(numbers) > RANGE_FILES:
            raise InvalidError(f"{source}: expected a range of at most {RANGE_FILES} files")
        start, end, wide = source[: match.start()], source[match.end() :], len(match[1])
        found = [file for n in numbers for file in _files_of(f"{start}{n:0{wide}}{end}")]
    if not found:
        raise NotFoundError(f"{source}: no tar file found")
    return found


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Errors of tarfile, of decompression and of the system become errors that name the file."""
    try:
        yield
    except Error:
        raise
    except _MALFORMED as error:
        raise InvalidError(f"{path}: {error}") from None
    except OSError as error:
        if error.errno is None:  # gzip.BadGzipFile
            raise InvalidError(f"{path}: {error}") from None
        raise ReadWriteError(f"{path}: cannot read: {error}", os_errno=error.errno) from None


class _Bounded:
    """A file that refuses to read much: tarfile allocates what a header states.

    left  the number of bytes that may still be read for the header or the member
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = READ_BYTES
        self.seek, self.tell = file.seek, file.tell

    def read(self, n: int) -> Any:
        self.left -= n
        if not 0 <= n <= READ_BYTES or self.left < 0:
            raise ValueError(f"expected headers of at most 1 MiB, found {n} bytes more")
        return self._file.read(n)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    refuse_pipe(path)
    with builtins.open(path, "rb") as file:
        yield gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def _members(path: str) -> Iterator[tuple[Any, Any]]:
    """The tar and the header of each file in it."""
    with _opened(path) as file:
        bounded = _Bounded(file)
        tar: Any = tarfile.open(fileobj=bounded, mode="r:")  # type: ignore[call-overload]
        for member in tar:
            tar.members = []  # which would keep all headers in memory
            if tar.offset <= member.offset:  # the next header would be this one again
                raise ValueError(f"{member.name}: negative size")
            if member.isfile():
                bounded.left = 2 * MEMBER_BYTES
                yield tar, member
            bounded.left = READ_BYTES


def _content(tar: Any, member: Any) -> bytes:
    if member.size > MEMBER_BYTES:
        raise ValueError(f"{member.name}: expected at most 1 GiB, found {member.size} bytes")
    file = tar.extractfile(member)
    pieces = []
    while piece := file.read(READ_BYTES):
        pieces.append(piece)
    content = b"".join(pieces)
    if len(content) != member.size:
        raise ValueError(f"{member.name}: expected {member.size} bytes, found {len(content)}")
    return content


def _split(name: str) -> tuple[str, str] | None:
    """The key and the suffix of a member; None: it belongs to no sample."""
    folder, slash, base = name.rpartition("/")
    if base.startswith(".") or META.match(name):
        return None
    stem, _, suffix = base.partition(".")
    if not suffix:
        raise ValueError(
            f"{name}: expected a name such as 0017.jpg, found one without a suffix; rename it or "
            "leave it out of the tar"
        )
    return f"{folder}{slash}{stem}", suffix.lower()


def _field(suffix: str) -> tuple[str, str]:
    """The name and the type of the field for a suffix."""
    stem, _, last = suffix.rpartition(".")
    kind, alone = KINDS.get(last, ("bytes?", suffix))
    name = stem if stem and kind != "bytes?" else alone
    if kind == "image" and last == "png" and name in ("mask", "seg"):
        kind = "mask"
    return name, kind


def _samples(path: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Sample]]:
    """The samples of a tar, with the contents of the wanted fields."""
    key = ""
    sample: Sample = {}
    n_bytes = 0
    for tar, member in _members(path):
        parts = _split(member.name)
        if parts is None:
            continue
        if parts[0] != key:
            if sample:
                yield key, sample
            key, sample, n_bytes = parts[0], {}, 0
        field, _ = _field(parts[1])
        if field in sample:
            raise ValueError(
                f"{member.name}: expected one member for field {field!r} in a sample, "
                "found a second one"
            )
        content = _content(tar, member) if wanted(field) else b""
        sample[field] = parts[1], content
        n_bytes += len(content)
        if n_bytes > SAMPLE_BYTES or len(sample) > FIELDS:
            raise ValueError(f"sample {key!r}: expected at most {FIELDS} members and 2 GiB")
    if sample:
        yield key, sample


def _number(content: bytes) -> int:
    return int(content.decode("ascii").strip())


def _type_of(suffix: str, content: bytes) -> str:
    """The type of a field, from its first member."""
    _, kind = _field(suffix)
    if kind == "npy":
        return _npy.parse(content)[0] or "bytes?"
    if kind == "i64":
        try:
            _number(content)
        except ValueError:
            return "text"
    return kind


def _value(kind: str, suffix: str, content: bytes) -> Any:
    """The value of a field of this type."""
    base = kind.partition("[")[0].rstrip("?")
    if base in ("image", "mask", "bytes"):
        return content
    if base == "text":
        text = content.decode()
        return text.strip() if _field(suffix)[1] == "i64" else text  # the name of a class
    if base == "json":
        json.loads(content)  # a file that is none is an error now, not when it is loaded
        return content
    return _npy.parse(content)[1] if suffix.endswith("npy") else _number(content)


class TarReader:
    part_rows = None  # counting them would take as long as reading all headers
    classes: Sequence[str] = ()

    def __init__(self, source: str, choice: Choice) -> None:
        self._files = _files_of(source)
        self._choice = choice
        self.parts = len(self._files)
        given = {name: kind for name, kind in (choice.columns or {}).items() if kind}
        self._found = {**self._find_types(self._files[0]), **given}
        self.schema: Mapping[str, str] = _columns.chosen(source, self._found, choice)
        self._read = {*self.schema, choice.key}
        self.class_field = choice.label or ("label" if "label" in self.schema else None)

    def _find_types(self, path: str) -> dict[str, str]:
        """The fields of all samples of the first tar."""
        found: dict[str, str] = {}
        with _reading(path):
            for _, sample in _samples(path, lambda name: name not in found):
                for name in [name for name in sample if name not in found]:
                    found[name] = _type_of(*sample[name])
        return found

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        path = self._files[part]
        with _reading(path):
            for number, (key, sample) in enumerate(_samples(path, self._read.__contains__)):
                values = self._values(path, key, sample)
                if self._choice.key == "":
                    key = _columns.row_key(part, number)
                elif self._choice.key is not None:
                    content = sample.get(self._choice.key, ("", b""))[1]
                    key = _columns.key_text(self._choice.key, content.strip())
                yield key, values

    def _values(self, path: str, key: str, sample: Sample) -> Any:
        for name in sample:
            if name not in self._found and self._choice.columns is None:
                raise InvalidError(
                    f"{path}: sample {key!r} has a member for field {name!r}, which no sample of "
                    f"{self._files[0]} has; name the fields to store with columns= or --columns"
                )
        return {name: self._one(path, key, name, sample) for name in self.schema}

    def _one(self, path: str, key: str, name: str, sample: Sample) -> Any:
        kind = self.schema[name]
        if name not in sample:
            if kind.endswith("?") or kind in ("image", "mask"):
                return None
            raise InvalidError(f"{path}: sample {key!r} has no member for field {name!r}")
        try:
            return _value(kind, *sample[name])
        except (ValueError, RecursionError) as error:
            raise InvalidError(
                f"{path}: sample {key!r}: field {name!r}: expected {kind}, found "
                f"{_check.shown(sample[name][1][:40])}: {error}"
            ) from None
