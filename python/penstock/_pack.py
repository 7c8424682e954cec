# SPDX-License-Identifier: Apache-2.0
"""Reading packs sample by sample."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Union

from . import _check, _core, _remote
from ._clip import Clip
from ._error import InvalidError, NotFoundError

# Codes of memoryview.cast.
_CODES: dict[str, Any] = {"i64": "q", "f32": "f", "f64": "d"}


class Field(NamedTuple):
    """A field of the schema. `str()` gives the text that penstock.Writer takes: "f32[2,3]",
    "text?" where samples may lack it."""

    name: str
    type: str
    mask: bool
    shape: tuple[int, ...]
    optional: bool = False

    def __str__(self) -> str:
        kind = "mask" if self.mask else self.type
        kind += f"[{','.join(map(str, self.shape))}]" if self.shape else ""
        return kind + "?" * self.optional


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


# True, or a function that is called with the bytes in memory and those of the pack.
Preload = Union[bool, Callable[[int, int], object]]


class Preloaded(NamedTuple):
    """A pack in memory."""

    bytes: int
    """Of memory, once for all processes that share it."""
    read_bytes: int
    """Of the pack, by this process."""
    was_there: bool
    """Another process, or this one, had it in memory already."""
    is_sealed: bool
    """Nobody can change it any more; False: some of the pack is damaged."""


class Sample(Mapping[str, Any]):
    """A sample: field name to value, each read when it is asked for.

    An image is its stored bytes, a clip a Clip of them, bytes are bytes, text is str, json is what
    json.loads makes of it, a number is int or float, and an array of numbers a memoryview with its
    shape (numpy.asarray takes it as it is). Bytes, text and json that the sample lacks are None.
    """

    __slots__ = ("_pack", "number")

    def __init__(self, pack: Pack, number: int) -> None:
        self._pack = pack
        self.number = number

    @property
    def key(self) -> str:
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
    """An open pack. Several threads may read it at once; a forked child opens it again by itself;
    pickling carries the path or address, not the data and no keys."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: _remote.StorageOptions | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int | str | None = None,
        preload: Preload = False,
    ) -> None:
        self.path = _check.path(path)
        if not isinstance(preload, bool) and not callable(preload):
            raise TypeError(
                f"preload: expected True, False or a function, found {_check.shown(preload)}"
            )
        if preload is not False and cache is not None:
            raise InvalidError("preload: the pack is in memory then; leave cache out")
        self._cache, self._cache_bytes = _cache(cache, cache_bytes)
        options, self._options = _remote.check(self.path, storage_options)
        self._has_secrets = len(self._options) < sum(
            value is not None for value in (storage_options or {}).values()
        )
        self._core = _core.Pack(self.path, options, self._cache, self._cache_bytes, preload)
        self._preload = preload is not False
        # Blocks are read whole, so samples had better come by blocks.
        self._is_whole = self._cache is not None or (options is not None and not self._preload)
        if options is not None:
            _remote.opened(self)
        self._info: dict[str, Any] = self._core.info()
        self.fields: tuple[Field, ...] = tuple(Field(*row) for row in self._info["fields"])
        self._numbers = {field.name: i for i, field in enumerate(self.fields)}
        self.schema: dict[str, str] = {field.name: str(field) for field in self.fields}
        self.classes: list[str] = self._info["classes"]
        self._len: int = self._info["n_samples"]

    @property
    def id(self) -> str:
        """32 hexadecimal digits that no other content has."""
        return typing.cast(bytes, self._info["id"]).hex()

    @property
    def info(self) -> dict[str, Any]:
        """Figures of the pack: samples, blocks, shards, bytes, how images are stored, how many
        samples lack a field, settings."""
        known = ("id", "fields", "class_field", "classes", "settings")
        figures = {name: value for name, value in self._info.items() if name not in known}
        figures["id"] = self.id
        import json  # not needed by most programs, and slow to import

        figures["settings"] = json.loads(self._info["settings"])
        figures["class_field"] = self.class_field
        return figures

    def cache_stats(self) -> dict[str, int]:
        """What the cache did since the pack was opened; all 0 without one.

        hits, misses  blocks that were there, and that were not
        tail_hits, tail_misses
                      the same of indexes of shards
        bytes_cache, bytes_origin
                      of blocks, from the cache and from where the pack is
        waited        hits that another process was fetching
        bad           entries that did not fit their checksums, and were replaced
        stored, stored_bytes
                      what was put there
        not_stored_full, not_stored_disk, not_stored_error, not_stored_busy
                      what was not: cache_bytes are reached; the disk is full; it failed; another
                      process held a lock for too long
        evicted_bytes of packs not in use, to make room
        """
        return self._core.cache_stats()

    def remote_stats(self) -> dict[str, int]:
        """Requests since the pack was opened; all 0 when it is on a disk.

        requests      all of them
        retries       of these, again after a failure
        hedges, hedges_won
                      second ones for those that are slow, and those of them that answered first
        throttles     answers that said "slow down"
        failures      what was given up
        bytes         of bodies that were taken
        in_flight, limit
                      under way now, and as many may be
        """
        return self._core.remote_stats()

    @property
    def class_field(self) -> str | None:
        """The field whose numbers the classes name."""
        number = self._info["class_field"]
        return None if number < 0 else self.fields[number].name

    @property
    def preloaded(self) -> Preloaded | None:
        """What preload=True has done; None without."""
        figures = self._core.preloaded()
        return None if figures is None else Preloaded(*figures)

    def __len__(self) -> int:
        return self._len

    def _number(self, number: object) -> int:
        try:
            at = _check.whole("number", number)
        except TypeError:
            raise TypeError(
                f"a pack is indexed by whole numbers, found {_check.shown(number)}; "
                "use pack.index(key) for keys, and Loader(..., subset=...) for parts"
            ) from None
        if not -self._len <= at < self._len:
            raise IndexError(f"sample {_check.shown(at)}: {self.path} has {self._len} samples")
        return at + self._len if at < 0 else at

    def _field(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"name: expected the name of a field, found {_check.shown(name)}")
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
        """The key of a sample; bytes that are not UTF-8 become surrogates, as in file names."""
        return self._core.key(self._number(number)).decode("utf-8", "surrogateescape")

    def index(self, key: str | bytes) -> int:
        """The number of the sample with this key; NotFoundError, a KeyError, when there is none."""
        if isinstance(key, str):
            try:
                key = key.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise InvalidError(f"key: expected a text, found {_check.shown(key)}") from None
        if not isinstance(key, bytes):
            raise TypeError(f"key: expected str or bytes, found {_check.shown(key)}")
        return self._core.find(key)

    def read(self, number: int, name: str) -> Any:
        """The value of a field, as Sample says."""
        at, field = self._number(number), self._field(name)
        kind = self.fields[field].type
        if kind == "clip":
            return Clip(self, at, field, range(self._core.frame_count(at, field)))
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
        shape = self.fields[field].shape
        if not shape:
            return memoryview(data).cast(_CODES[kind])[0]
        return memoryview(data).cast(_CODES[kind], shape)

    def missing(self, number: int, name: str) -> bool:
        """Does the sample lack this field? True for no image, and for no value of an optional field
        ("text?"), which an empty value is not."""
        return self._core.missing(self._number(number), self._field(name))

    def frames(self, number: int, name: str, frames: slice | None = None) -> list[bytes]:
        """The stored bytes of some frames of a clip, read at once: frames=slice(0, 16, 2)."""
        at, field = self._number(number), self._field(name)
        n = self._core.frame_count(at, field)
        first, stop, step = _slice("frames", frames).indices(n)
        if step < 1:
            raise InvalidError(f"frames: expected a step of 1 or more, found {step}")
        return self._core.frames(at, field, first, step, len(range(first, stop, step)))

    def image(self, number: int, name: str, frame: int = 0) -> ImageInfo:
        """How an image is stored; reads no pixels."""
        at, field = self._number(number), self._field(name)
        return ImageInfo(*self._core.image(at, field, _check.integer("frame", frame, 0, 2**32 - 1)))

    def extract(self, number: int, name: str, frame: int = 0) -> bytes:
        """An image as a file of its own: JPEGs with their metadata put back, raw pixels as PNG."""
        at, field = self._number(number), self._field(name)
        return self._core.extract(at, field, _check.integer("frame", frame, 0, 2**32 - 1))[0]

    def metadata(self, number: int, name: str, frame: int = 0) -> bytes:
        """EXIF and ICC set aside when the image was packed: whole JPEG marker segments."""
        at, field = self._number(number), self._field(name)
        return self._core.metadata(at, field, _check.integer("frame", frame, 0, 2**32 - 1))

    def close(self) -> None:
        self._core.close()

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Pack], tuple[Any, ...]]:
        if self._has_secrets:
            raise TypeError(
                f"{self.path}: opened with keys, a function for credentials or a password, which "
                "are not pickled; name a profile (storage_options={'profile': ...}) or set the "
                "AWS_ variables, which the other process finds by itself, or open the pack there"
            )
        return Pack, (
            self.path, self._options or None, self._cache, self._cache_bytes or None, self._preload
        )

    def __repr__(self) -> str:
        return f"<penstock.Pack {self.path}: {self._len} samples>"


def _slice(name: str, value: slice | None) -> slice:
    if value is None:
        return slice(None)
    if not isinstance(value, slice):
        raise TypeError(f"{name}: expected a slice, found {_check.shown(value)}")
    for part in (value.start, value.stop, value.step):
        if part is not None:
            _check.whole(name, part)
    if value.step is not None and not value.step:
        raise InvalidError(f"{name}: expected a step that is not 0")
    return value


def _cache(
    cache: str | os.PathLike[str] | None, cache_bytes: int | str | None
) -> tuple[str | None, int]:
    if cache is None:
        if cache_bytes is not None:
            raise InvalidError("cache_bytes: there is no cache; name its directory with cache=")
        return None, 0
    path = _check.path(cache, "cache")
    if "://" in path:
        raise InvalidError(f"cache: expected a directory of this machine, found {path!r}")
    return path, 0 if cache_bytes is None else _check.size("cache_bytes", cache_bytes)


def open(
    path: str | os.PathLike[str],
    storage_options: _remote.StorageOptions | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int | str | None = None,
    preload: Preload = False,
) -> Pack:
    """Open the pack in directory `path`, or at an s3://, https:// or http:// address, for which
    there are `storage_options`. Reads the manifest, nothing of any shard.

    `cache` is a directory on a fast disk of this machine in which blocks are kept, shared by all
    processes and jobs; it is made when it is not there. `cache_bytes` ("500GiB") is the most that
    all packs in it may take together; None: half of the disk.

    `preload` brings all of it into memory that the processes of this user share; it may be a
    function that is called with the bytes there and the bytes of the pack."""
    return Pack(path, storage_options, cache, cache_bytes, preload)
