# SPDX-License-Identifier: Apache-2.0
"""Read samples of a pack by number or key."""

from __future__ import annotations

import math
import os
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _check, _core, _remote
from ._clip import Clip
from ._error import InvalidError, NotFoundError

# Codes of memoryview.cast.
_CODES: dict[str, Any] = {"i64": "q", "f32": "f", "f64": "d"}
_MASK, _OPTIONAL = 1, 2  # PEN_FIELD_*
COORDINATES = {  # the same: PEN_FIELD_COORDINATES, with PEN_FIELD_RELATIVE
    f"{kind} {unit}": number + extra
    for kind, number in (
        ("boxes xyxy", 4), ("boxes xywh", 8), ("boxes cxcywh", 12), ("points", 16)
    )
    for unit, extra in (("absolute", 0), ("relative", 32))
}  # fmt: skip
_COORDINATES = {number: text for text, number in COORDINATES.items()}
_DTYPES = {"i64": "<i8", "f32": "<f4", "f64": "<f8"}


class Field(NamedTuple):
    """A field of the schema. str() returns the type as penstock.Writer takes it: "f32[2,3]",
    "text?" for an optional field, or "f32[*,4] boxes xyxy absolute" for a ragged one.

    shape        of numbers; the first number is None in a ragged field
    coordinates  of a ragged field: "boxes xyxy absolute", "points relative", ...; "": none
    """

    name: str
    type: str
    mask: bool
    shape: tuple[int | None, ...]
    optional: bool = False
    coordinates: str = ""

    @property
    def ragged(self) -> bool:
        """True if a value can have any number of rows."""
        return self.shape[:1] == (None,)

    def __str__(self) -> str:
        kind = "mask" if self.mask else self.type
        shape = ",".join("*" if n is None else str(n) for n in self.shape)
        kind += f"[{shape}]" if self.shape else ""
        return f"{kind}{'?' * self.optional} {self.coordinates}".rstrip()


def flags_of(field: Field) -> int:
    """PEN_FIELD_* of the C API."""
    flags = _MASK * field.mask + _OPTIONAL * field.optional
    return flags + COORDINATES.get(field.coordinates, 0)


def _field(name: str, kind: str, flags: int, shape: tuple[int | None, ...]) -> Field:
    mask, optional = bool(flags & _MASK), bool(flags & _OPTIONAL)
    return Field(name, kind, mask, shape, optional, _COORDINATES.get(flags & ~3, ""))


def shape_of(field: Field, data: bytes) -> tuple[int, ...]:
    """The shape of a value with these bytes."""
    row = tuple(n for n in field.shape if n is not None)
    itemsize = 4 if field.type == "f32" else 8
    return (len(data) // (itemsize * math.prod(row)), *row) if field.ragged else row


def numbers(field: Field, data: bytes) -> Any:
    """A number, or a memoryview of the numbers."""
    shape, code = shape_of(field, data), _CODES[field.type]
    if not shape:
        return memoryview(data).cast(code)[0]
    if data:
        return memoryview(data).cast(code, shape)
    # cast takes no 0: one row, and of it none.
    return numbers(field, bytes(8 * math.prod(shape[1:])))[:0]


class ImageInfo(NamedTuple):
    """How an image, or a frame of a clip, is stored."""

    width: int
    height: int
    codec: str
    how: str
    orientation: int
    channels: int
    bytes: int
    source_bytes: int
    timestamp_ns: int


# True, or a progress function that is called with the bytes loaded and the bytes in total.
Preload = Union[bool, Callable[[int, int], object]]
Paths = Sequence[Union[str, "os.PathLike[str]"]]


class Preloaded(NamedTuple):
    """A pack that is loaded into memory."""

    bytes: int
    """Size in memory, which all processes share."""
    read_bytes: int
    """Bytes that this process read from the pack."""
    was_there: bool
    """True if the pack was in memory before."""
    is_sealed: bool
    """True if the memory is read-only from now on; False if part of the pack is damaged."""


class Sample(Mapping[str, Any]):
    """A sample: a mapping from field name to value. Each field is read on access.

    image       the stored bytes of the file
    clip        a Clip
    bytes       bytes
    text        str
    json        the result of json.loads
    numbers     int or float; with a shape, a memoryview that numpy.asarray accepts

    A missing value of bytes, text, json or a ragged field is None; a missing image is b"".
    """

    __slots__ = ("_pack", "number")

    def __init__(self, pack: Pack, number: int) -> None:
        self._pack = pack
        self.number = number

    @property
    def key(self) -> str:
        """The key of the sample."""
        return self._pack.key(self.number)

    def __getitem__(self, name: str) -> Any:
        return self._pack.read(self.number, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pack.schema)

    def __len__(self) -> int:
        return len(self._pack.schema)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._pack.schema

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self._pack.schema.items())
        return f"<sample {self.number} of {self._pack.path}: {fields}>"


class Pack:
    """An open pack: a sequence of samples.

    Several threads can read it at once. A forked child process reopens it automatically. Pickling
    stores the path or URL, but neither data nor credentials.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: _remote.StorageOptions | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int | str | None = None,
        preload: Preload = False,
        roots: Paths | None = None,
        relocate: dict[str, str] | None = None,
    ) -> None:
        self.path = _check.path(path)
        self._roots, self._relocate = _files(roots, relocate)
        if not isinstance(preload, bool) and not callable(preload):
            raise TypeError(
                f"preload: expected True, False or a function, found {_check.shown(preload)}"
            )
        if preload is not False and cache is not None:
            raise InvalidError("preload: a preloaded pack needs no cache; leave cache out")
        self._cache, self._cache_bytes = _cache(cache, cache_bytes)
        places = [*self._roots, *self._relocate.values()]
        options, self._options = _remote.check(self.path, storage_options, places)
        self._has_secrets = len(self._options) < sum(
            value is not None for value in (storage_options or {}).values()
        )
        texts = [*self._roots, *(path for pair in self._relocate.items() for path in pair)]
        files = b"".join(os.fsencode(text) + b"\0" for text in texts)
        self._core = _core.Pack(
            self.path, options, self._cache, self._cache_bytes, preload, files, len(self._roots)
        )
        self._preload = preload is not False
        if options is not None:
            _remote.opened(self)
        self._info: dict[str, Any] = self._core.info()
        self.fields: tuple[Field, ...] = tuple(_field(*row) for row in self._info["fields"])
        if any(field.type == "clip" for field in self.fields):
            from . import _video  # noqa: F401: finds the decoder
        self._numbers = {field.name: i for i, field in enumerate(self.fields)}
        self.schema: dict[str, str] = {field.name: str(field) for field in self.fields}
        self.classes: list[str] = self._info["classes"]
        self._len: int = self._info["n_samples"]

    @property
    def id(self) -> str:
        """32 hexadecimal digits that identify the content."""
        return typing.cast(bytes, self._info["id"]).hex()

    @property
    def info(self) -> dict[str, Any]:
        """Statistics of the pack: samples, blocks, shards, bytes, how images are stored, samples
        with missing fields, and the settings it was packed with."""
        known = ("id", "fields", "class_field", "classes", "settings")
        figures = {name: value for name, value in self._info.items() if name not in known}
        figures["id"] = self.id
        import json  # slow to import, and most programs do not need it

        figures["settings"] = json.loads(self._info["settings"])
        figures["class_field"] = self.class_field
        return figures

    def cache_stats(self) -> dict[str, int]:
        """Cache statistics since the pack was opened. All are 0 without a cache.

        hits, misses  blocks found in the cache, and not found
        tail_hits, tail_misses
                      shard indexes found in the cache, and not found
        bytes_cache, bytes_origin
                      bytes of blocks read from the cache, and from the pack itself
        waited        hits for which another process fetched the block
        bad           damaged entries, which were replaced
        stored, stored_bytes
                      blocks written to the cache, and their bytes
        not_stored_full, not_stored_disk, not_stored_error, not_stored_busy
                      blocks not written: cache_bytes is reached; the disk is full; a write failed;
                      another process held a lock too long
        evicted_bytes bytes of unused packs that were deleted to free space
        """
        return self._core.cache_stats()

    def remote_stats(self) -> dict[str, int]:
        """Request statistics since the pack was opened. All are 0 for a local pack.

        requests      requests sent, including retries and hedges
        retries       requests repeated after a failure
        hedges, hedges_won
                      hedged requests for slow ones, and those that finished first
        throttles     responses that asked to slow down
        failures      requests that failed for good
        bytes         bytes received in response bodies
        in_flight, limit
                      requests in flight now, and their current limit
        """
        return self._core.remote_stats()

    @property
    def class_field(self) -> str | None:
        """The field that holds the class numbers."""
        number = self._info["class_field"]
        return None if number < 0 else self.fields[number].name

    @property
    def preloaded(self) -> Preloaded | None:
        """What preload=True loaded, or None."""
        figures = self._core.preloaded()
        return None if figures is None else Preloaded(*figures)

    def __len__(self) -> int:
        return self._len

    def _number(self, number: object) -> int:
        try:
            at = _check.whole("number", number)
        except TypeError:
            raise TypeError(
                f"pack: expected the number of a sample, found {_check.shown(number)}; "
                "use pack.index(key) for keys, and Loader(..., subset=...) for parts"
            ) from None
        if not -self._len <= at < self._len:
            raise IndexError(f"no sample {_check.shown(at)}: {self.path} has {self._len} samples")
        return at + self._len if at < 0 else at

    def _field(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"name: expected a field name, found {_check.shown(name)}")
        number = self._numbers.get(name)
        if number is None:
            near = _check.nearest(name[:100], self._numbers)
            raise NotFoundError(
                f"{self.path}: no field {_check.shown(name)}{near}", where="pack/read"
            )
        return number

    def __getitem__(self, number: int) -> Sample:
        return Sample(self, self._number(number))

    def __iter__(self) -> Iterator[Sample]:
        return (Sample(self, i) for i in range(self._len))

    def key(self, number: int) -> str:
        """The key of a sample. Bytes that are not UTF-8 become surrogates, as in file names."""
        return self._core.key(self._number(number)).decode("utf-8", "surrogateescape")

    def index(self, key: str | bytes) -> int:
        """The number of the sample with this key. Raises NotFoundError (a KeyError)."""
        if isinstance(key, str):
            try:
                key = key.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise InvalidError(f"key: expected a text, found {_check.shown(key)}") from None
        if not isinstance(key, bytes):
            raise TypeError(f"key: expected str or bytes, found {_check.shown(key)}")
        return self._core.find(key)

    def read(self, number: int, name: str) -> Any:
        """The value of a field. See Sample for the types."""
        at, field = self._number(number), self._field(name)
        kind = self.fields[field].type
        if kind == "clip":
            frames = range(self._core.frame_count(at, field))
            origin = f"{self.fields[field].name!r}, sample {at} of {self.path}"
            return Clip(self._core, at, field, frames, origin)
        data = self._core.read(at, field)
        if not data and self.fields[field].optional and self._core.missing(at, field):
            return None
        if kind == "text":
            return data.decode("utf-8", "surrogateescape")
        if kind == "json":
            import json

            return json.loads(data)
        if kind not in _CODES:
            return data
        return numbers(self.fields[field], data)

    def missing(self, number: int, name: str) -> bool:
        """True if the sample has no image, or no value of an optional field ("text?"). An empty
        text, empty bytes or 0 rows are values."""
        return self._core.missing(self._number(number), self._field(name))

    def frames(self, number: int, name: str, frames: slice | None = None) -> list[bytes]:
        """The stored bytes of frames of a clip, in one read: frames=slice(0, 16, 2)."""
        at, field = self._number(number), self._field(name)
        n = self._core.frame_count(at, field)
        first, stop, step = _slice("frames", frames).indices(n)
        if step < 1:
            raise InvalidError(f"frames: expected a step of 1 or more, found {step}")
        return self._core.frames(at, field, first, step, len(range(first, stop, step)))

    def column(
        self, name: str, what: str | None = None, samples: slice | None = None
    ) -> Any:
        """One value of each sample, as a NumPy array. It reads no images.

        name     a field
        what     None: the numbers of a numeric field, as int64, float32 or float64
                 "size": width and height of each image, or of the first frame of each clip, as
                 int32 with the shape (n, 2); 0 and 0 if there is none. The image is upright.
                 "frames": the number of frames of each clip, as int32
        samples  some of the samples: slice(0, 1000); None: all
        """
        field = self._field(name)
        number, dtype, shape = _column(self.fields[field], what)
        first, stop, step = _slice("samples", samples).indices(self._len)
        if step < 1:
            raise InvalidError(f"samples: expected a step of 1 or more, found {step}")
        import numpy as np

        n = max(stop - first, 0)
        values = np.empty((n, *shape), dtype)
        if n:
            self._core.column(field, number, first, n, values.reshape(-1))
        return values[::step]

    def image(self, number: int, name: str, frame: int = 0) -> ImageInfo:
        """How an image is stored. It reads no pixels."""
        at, field = self._number(number), self._field(name)
        return ImageInfo(*self._core.image(at, field, _check.integer("frame", frame, 0, 2**32 - 1)))

    def extract(self, number: int, name: str, frame: int = 0) -> bytes:
        """An image as a file: a JPEG with its metadata restored, or raw pixels as PNG."""
        at, field = self._number(number), self._field(name)
        return self._core.extract(at, field, _check.integer("frame", frame, 0, 2**32 - 1))[0]

    def metadata(self, number: int, name: str, frame: int = 0) -> bytes:
        """The EXIF and ICC data of the image, as complete JPEG marker segments."""
        at, field = self._number(number), self._field(name)
        return self._core.metadata(at, field, _check.integer("frame", frame, 0, 2**32 - 1))

    def close(self) -> None:
        """Close the pack. A loader that uses it keeps it open."""
        self._core.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Pack], tuple[Any, ...]]:
        if self._has_secrets:
            raise TypeError(
                f"{self.path}: it was opened with credentials and cannot be pickled; use a profile "
                "(storage_options={'profile': ...}) or the AWS_ environment variables, or open the "
                "pack in the other process"
            )
        return Pack, (
            self.path, self._options or None, self._cache, self._cache_bytes or None, self._preload,
            self._roots or None, self._relocate or None,
        )

    def __repr__(self) -> str:
        what = f"{self._len} samples" if hasattr(self, "_len") else "could not be opened"
        return f"<penstock.Pack {getattr(self, 'path', '')}: {what}>"


def _column(field: Field, what: object) -> tuple[int, str, tuple[int, ...]]:
    """The number of a column, its dtype and the shape of a sample's value."""
    if what is not None and not isinstance(what, str):
        raise TypeError(f"what: expected 'size' or 'frames', found {_check.shown(what)}")
    shape = tuple(n for n in field.shape if n is not None)
    if what is None and field.type in _DTYPES and not field.ragged:
        return 0, _DTYPES[field.type], shape
    if what == "size" and field.type in ("image", "clip"):
        return 1, "<i4", (2,)
    if what == "frames" and field.type == "clip":
        return 2, "<i4", ()
    choices = {
        "image": "'size'", "clip": "'size' or 'frames'", "i64": "None", "f32": "None", "f64": "None"
    }
    if field.type not in choices or field.ragged:
        raise InvalidError(
            f"field {field.name!r}: expected numbers of one shape, an image or a clip, found "
            f"{'ragged ' * field.ragged}{field.type}"
        )
    raise InvalidError(
        f"what: expected {choices[field.type]} for the {field.type} field {field.name!r}, "
        f"found {_check.shown(what)}"
    )


def _slice(name: str, value: slice | None) -> slice:
    if value is None:
        return slice(None)
    if not isinstance(value, slice):
        raise TypeError(f"{name}: expected a slice, found {_check.shown(value)}")
    for part in (value.start, value.stop, value.step):
        if part is not None:
            _check.whole(name, part)
    if value.step is not None and not value.step:
        raise InvalidError(f"{name}: expected a step other than 0")
    return value


def _cache(
    cache: str | os.PathLike[str] | None, cache_bytes: int | str | None
) -> tuple[str | None, int]:
    if cache is None:
        if cache_bytes is not None:
            raise InvalidError("cache_bytes: there is no cache; set its directory with cache=")
        return None, 0
    path = _check.path(cache, "cache")
    if "://" in path:
        raise InvalidError(f"cache: expected a local directory, found {path!r}")
    return path, 0 if cache_bytes is None else _check.size("cache_bytes", cache_bytes)


def _files(
    roots: Paths | None, relocate: dict[str, str] | None
) -> tuple[list[str], dict[str, str]]:
    if roots is not None and not isinstance(roots, (list, tuple)):
        raise TypeError(f"roots: expected a list of directories, found {_check.shown(roots)}")
    if relocate is not None and not isinstance(relocate, dict):
        raise TypeError(f"relocate: expected a dict, found {_check.shown(relocate)}")
    # Old directories need not exist, and are not paths of this machine.
    return [_check.path(root, "roots") for root in roots or ()], {
        _check.path(old, "relocate"): _check.path(new, "relocate")
        for old, new in (relocate or {}).items()
    }


def open(
    path: str | os.PathLike[str],
    storage_options: _remote.StorageOptions | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int | str | None = None,
    preload: Preload = False,
    roots: Paths | None = None,
    relocate: dict[str, str] | None = None,
) -> Pack:
    """Open a pack. It reads the manifest, but no shard.

    path             a directory, or an s3://, https:// or http:// URL
    storage_options  options for a URL: see StorageOptions. They also apply to roots and relocate.
    cache            a directory on a fast local disk that keeps blocks. All processes and jobs of
                     this user share it. It is created if it does not exist.
    cache_bytes      maximum size of the cache for all packs together ("500GiB"); None: half of the
                     disk
    preload          True: load the entire pack into memory, which all processes of this user share.
                     A function is called with the bytes loaded and the total bytes.
    roots            for an in-place pack: directories below which it may name files by absolute
                     paths, and s3://, https:// or http:// URLs below which it may name objects.
                     What is below the directory or URL that holds the pack is always found.
    relocate         for an in-place pack: directories or URLs that have moved, {old: new}. Files
                     that were below the old one are read below the new one.
    """
    return Pack(path, storage_options, cache, cache_bytes, preload, roots, relocate)
