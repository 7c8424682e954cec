# SPDX-License-Identifier: Apache-2.0
"""Write a pack sample by sample, from any source of data."""

from __future__ import annotations

import os
import re
import struct
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from . import _check, _core, _remote
from ._error import BusyError, InvalidError
from ._pack import COORDINATES, Field, flags_of

_TYPES = {"image": 1, "clip": 2, "bytes": 3, "json": 4, "text": 5, "i64": 6, "f32": 7, "f64": 8}
_CODES = {"i64": "q", "f32": "f", "f64": "d"}
# Buffer formats that need no conversion; NumPy uses l for 64 bits.
_FORMATS = {
    kind: (code, "<" + code, *("l" * (struct.calcsize("l") == 8 and kind == "i64")))
    for kind, code in _CODES.items()
}
_MODES = {"keep": 1, "encode": 2, "raw": 3, "mix": 4, "smart": 5}
_CODECS = {"jpeg": 0, "webp": 1}
_SIXTEEN_BIT = {"refuse": 0, "reduce": 1}
_PROGRESSIVE = {"keep": 0, "convert": 1}
_TYPE = re.compile(
    r"\s*([a-z0-9_]+)\s*(?:\[([\d\s,*]+)\])?\s*(\?)?\s*(?:(?<=[\s\]?])([a-z][a-z\s]*))?"
)
_OPTIONAL = ("bytes", "json", "text")
_MOST_DIMS = 4
_OPEN = 2**32 - 1  # PEN_TASKS_OPEN
_MOST_TASKS = 1_000_000
_RETRY_S = 0.1  # the system does not report when a lock becomes free
_T = TypeVar("_T")


def _mode_number(mode: str) -> int:
    if isinstance(mode, str) and mode == "tile":
        raise InvalidError(
            "mode: tiles can be read, but are no longer written; use \"keep\" (the default) or "
            "\"encode\""
        )
    return _MODES[_check.word("mode", mode, _MODES)]


def is_shape(shape: Sequence[int]) -> bool:
    """True if a field can have this shape."""
    return len(shape) <= _MOST_DIMS and all(n < 2**32 for n in shape)


def _shape(name: str, text: str | None) -> tuple[int | None, ...]:
    """The shape in "2,3" or "*,4". None, for *, is the first one only."""
    parts = [part for part in (text or "").split(",") if part.strip()]
    is_ragged = bool(parts) and parts[0].strip() == "*"
    try:
        shape = tuple(int(part) for part in parts[is_ragged:])
    except ValueError:  # "2 3", "2,*", or a number of thousands of digits
        shape = (2**32,)
    if not is_shape((1,) * is_ragged + shape):
        raise InvalidError(
            f"field {name!r}: expected a shape of at most {_MOST_DIMS} numbers below 2^32, the "
            f"first one may be *, found {_check.shown(text)}"
        )
    if 0 in shape:  # the library takes 0 for *
        raise InvalidError(f"field {name!r}: expected no 0 in the shape, found {text!r}")
    return (None,) * is_ragged + shape


def _coordinates(name: str, kind: str, shape: tuple[int | None, ...], text: str | None) -> str:
    """The coordinates in "boxes xyxy absolute", for a field of this shape."""
    words = " ".join((text or "").split())
    if words and words not in COORDINATES:
        raise InvalidError(
            f"field {name!r}: expected coordinates like 'boxes xyxy absolute' or 'points "
            f"relative', found {_check.shown(words)}; boxes are xyxy, xywh or cxcywh"
        )
    is_box = words.startswith("boxes")
    fits = shape == (None, 4) if is_box else len(shape) > 1 and shape[0] is None and shape[-1] == 2
    if words and not (kind == "f32" and fits):
        raise InvalidError(
            f"field {name!r}: expected {'f32[*,4]' if is_box else 'f32[*,2]'} for {words!r}"
        )
    return words


def _parse_field(name: str, text: str) -> Field:
    """A Field from "image", "mask", "i64", "f32[2,3]", "text?", "f32[*,4] boxes xyxy absolute"."""
    if not isinstance(name, str) or not isinstance(text, str):
        raise TypeError(f"schema: expected str for names and types, found {name!r}: {text!r}")
    if "\0" in name or name != name.encode("utf-8", "ignore").decode():  # a lone surrogate
        raise InvalidError(f"field {name!r}: expected a name in UTF-8, without NUL")
    m = _TYPE.fullmatch(text)
    if not m:
        raise InvalidError(
            f"field {name!r}: expected a type like image, i64 or f32[2,3], found {text!r}"
        )
    kind = _check.word(f"field {name!r}", m[1], [*_TYPES, "mask"])
    shape = _shape(name, m[2])
    if shape and kind not in _CODES:
        raise InvalidError(f"field {name!r}: only numbers have a shape, found {text!r}")
    if m[3] and kind not in _OPTIONAL and shape[:1] != (None,):
        raise InvalidError(
            f"field {name!r}: only {', '.join(_OPTIONAL)} and shapes with * may be optional (?), "
            f"found {text!r}"
        )
    coordinates = _coordinates(name, kind, shape, m[4])
    mask = kind == "mask"
    return Field(name, "image" if mask else kind, mask, shape, bool(m[3]), coordinates)


def _is_bytes(value: object) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _flat(value: Any, shape: tuple[int | None, ...]) -> list[Any] | None:
    """The numbers of nested sequences of this shape, or None if the shape differs."""
    if not shape:
        return [value]
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return None
    if len(value) != shape[0] and shape[0] is not None:
        return None
    parts = [_flat(item, shape[1:]) for item in value]
    if any(part is None for part in parts):
        return None
    return [number for part in parts for number in part or ()]


def _no_numbers(field: Field, value: Any, why: object = "") -> InvalidError:
    shape = f" of shape {field.shape}" if field.shape else ""
    because = f": {why}" if str(why) else ""
    if value is None and field.ragged:
        because = f'; if values may be missing, use the type "{str(field).replace("]", "]?", 1)}"'
    return InvalidError(
        f"field {field.name!r}: expected {field.type}{shape}, found {_check.shown(value)}{because}"
    )


def _buffer(field: Field, value: Any) -> memoryview | None:
    """The buffer of a value that already has the field's type and shape."""
    try:
        view = memoryview(value)
    except Exception:
        return None
    shape: tuple[int | None, ...] = view.shape or ()
    if field.ragged and shape:
        shape = (None, *shape[1:])
    return view if shape == field.shape and view.format in _FORMATS[field.type] else None


def _numbers(field: Field, value: Any) -> bytes | memoryview:
    """The bytes of numbers, nested sequences, or objects with tolist() or a matching buffer.
    Booleans become 0 and 1."""
    view = _buffer(field, value)
    if view is not None:
        return view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    try:
        plain = value.tolist() if hasattr(value, "tolist") else value
        flat = _flat(plain, field.shape)
        if flat is None:
            raise _no_numbers(field, value)
        return struct.pack(f"<{len(flat)}{_CODES[field.type]}", *flat)
    except InvalidError:
        raise
    except Exception as error:  # values of other types can raise anything
        raise _no_numbers(field, value, error) from None


def _encoded(what: str, value: str) -> bytes:
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidError(f"{what}: expected a text, found {_check.shown(value)}") from None


def _image(field: Field, value: Any) -> Any:
    if value is None:
        return b""
    if not _is_bytes(value):
        raise InvalidError(
            f"field {field.name!r}: expected the bytes of a JPEG, PNG or WebP file, found "
            f"{type(value).__name__}; encode pixels first, for example as PNG, which is lossless"
        )
    return value


def _list(field: Field, value: Any, what: str) -> list[Any]:
    try:
        if not _is_bytes(value) and not isinstance(value, str):
            return list(value)
    except Exception:
        pass
    raise InvalidError(
        f"field {field.name!r}: expected a list of {what}, found {_check.shown(value)}"
    )


def _times(field: Field, value: Any) -> list[int]:
    name = f"field {field.name!r}: time in ns"
    return [
        _check.integer(name, time, -(2**63), 2**63 - 1) for time in _list(field, value, "times")
    ]


def _clip(field: Field, value: Any) -> tuple[Any, list[int]]:
    """Frames and times, from a list of frames or a tuple (frames, times in ns); or the path or
    URL of a video and the times of some of its frames."""
    times: list[int] = []
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (str, os.PathLike)):
        return os.fsencode(value[0]), _times(field, value[1])
    if isinstance(value, tuple) and len(value) == 2 and not _is_bytes(value[0]):
        value, times = _list(field, value[0], "frames"), _times(field, value[1])
        if len(times) != len(value):
            raise InvalidError(
                f"field {field.name!r}: expected one time for each of {len(value)} frames, "
                f"found {len(times)}"
            )
    return [_image(field, frame) for frame in _list(field, value, "frames")], times


def _blob(field: Field, value: Any) -> Any:
    if not _is_bytes(value):
        wanted = "str or bytes" if field.type == "text" else "bytes"
        advice = f'; if values may be missing, use the type "{field.type}?"'
        raise InvalidError(
            f"field {field.name!r}: expected {wanted}, found "
            + (f"None{advice}" if value is None else type(value).__name__)
        )
    return value


def _text(field: Field, value: Any) -> Any:
    if isinstance(value, str):
        return _encoded(f"field {field.name!r}", value)
    return _blob(field, value)


def _json(field: Field, value: Any) -> Any:
    import json

    if _is_bytes(value):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except Exception as error:  # values of other types can raise anything
        raise InvalidError(f"field {field.name!r}: expected JSON: {error}") from None


_CONVERT: dict[str, Callable[[Field, Any], Any]] = {
    "image": _image,
    "clip": _clip,
    "bytes": _blob,
    "text": _text,
    "json": _json,
    "i64": _numbers,
    "f32": _numbers,
    "f64": _numbers,
}


def _convert(field: Field, value: Any) -> Any:
    return None if value is None and field.optional else _CONVERT[field.type](field, value)


def _class_names(classes: Sequence[str] | None) -> list[bytes]:
    try:
        names = list(classes or ()) if not isinstance(classes, (str, bytes)) else [None]
    except Exception:
        names = [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"classes: expected a list of names, found {_check.shown(classes)}")
    return [_encoded("classes", name) for name in names if name is not None]


def _task_numbers(task: object) -> tuple[int, int]:
    """The number of a task and of all tasks, as the library has them; 0 of 0 is no task."""
    if task is None:
        return 0, 0
    if not isinstance(task, (tuple, list)) or len(task) != 2:
        raise TypeError(
            f"task: expected (number, number of tasks), for example (0, 8), or (number, None), "
            f"found {_check.shown(task)}"
        )
    n = _MOST_TASKS if task[1] is None else _check.integer("task", task[1], 1, _MOST_TASKS)
    number = _check.integer("task", task[0], 0, n - 1)
    return number, _OPEN if task[1] is None else n


def _when_free(wait: float, call: Callable[[], _T]) -> _T:
    """call(), again and again for so many seconds while another process has the lock."""
    seconds = _check.real("wait", wait, 0, 10**9, " s")
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except BusyError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(min(_RETRY_S, max(0.0, deadline - time.monotonic())))


class Writer:
    """Write a pack sample by sample. The pack becomes visible when finish() returns or the `with`
    block ends. An exception in the block leaves no pack.

    schema       a dict of field name to type: image, mask, clip, bytes, json, text, i64, f32, f64.
                 Numbers can have a shape ("f32[2,3]"), whose first dimension can differ between
                 samples ("f32[*,4]"). "bytes?", "json?", "text?" and "f32[*,4]?" are optional.
                 Boxes and points name their convention: "f32[*,4] boxes xyxy absolute".
    classes      class names, for the numbers in `class_field`
    class_field  the field of class numbers; None: the first i64 field without a shape
    mode         how images are stored: keep (default, byte for byte), encode, raw, mix or
                 smart. See `penstock pack --help` for the modes and for `codec`, `quality`,
                 `max_side`, `short_side`, `raw_share`, `smart_threshold`.
    index        False, with mode="keep": only store the files. JPEGs get no index of places at
                 which decoding can start, and no image is decoded. With mode="encode" or
                 "smart": the JPEGs get no index
    progressive  with mode="keep", for JPEGs with several scans, which cannot have such an index:
                 "keep" (default) stores the file; "convert" stores a baseline JPEG with the same
                 pixels and an index
    check_decode True, with index=False: decode every image to find damaged files
    sixteen_bit  for a PNG with 16 bits per channel in an image field: "refuse" (default) raises
                 UnsupportedError; "reduce" accepts it, and loading returns the upper 8 bits
    block_samples
                 samples per block
    shard_size   maximum size of a shard file: "512MiB"
    name         a name for the data, which becomes part of the shard ids
    storage_options
                 for s3:// URLs, as in penstock.open
    work         for an s3:// URL: a local directory for temporary files; None: one in the user's
                 cache directory. Tasks need none
    task         (i, n): this writer writes part i (from 0) of a pack that n writers write, in other
                 processes or on other machines. finish() completes the part; when all are complete,
                 penstock.finalise(path) publishes the pack. A task that is run again replaces what
                 it wrote before. (i, None): the number of tasks is passed to finalise()
    wait         how many seconds to wait if another process writes the same pack or task in a
                 directory. 0 raises BusyError at once
    in_place     True: clips are frames of videos, whose files stay where they are and must not
                 change. add() gets a path or an s3:// URL, and the times of the frames
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: Mapping[str, str],
        *,
        classes: Sequence[str] | None = None,
        class_field: str | None = None,
        mode: str = "keep",
        quality: int = 90,
        max_side: int = 0,
        short_side: int = 0,
        raw_share: float = 0.25,
        codec: str = "jpeg",
        smart_threshold: int | str = "64KiB",
        index: bool = True,
        progressive: str = "keep",
        check_decode: bool = False,
        sixteen_bit: str = "refuse",
        block_samples: int = 32,
        shard_size: int | str = "512MiB",
        name: str = "",
        storage_options: _remote.StorageOptions | None = None,
        work: str | os.PathLike[str] | None = None,
        task: tuple[int, int | None] | None = None,
        wait: float = 0,
        in_place: bool = False,
    ) -> None:
        self.path = _check.path(path)
        videos = ("s3://",) if _check.flag("in_place", in_place) else ()  # they may be objects
        options, _ = _remote.check(self.path, storage_options, videos)
        if not isinstance(schema, Mapping):
            raise TypeError(
                f"schema: expected a dict of field name to type, found {_check.shown(schema)}"
            )
        self.fields = tuple(_parse_field(key, text) for key, text in schema.items())
        if not self.fields:
            raise InvalidError("schema: expected at least one field, found none")
        self._names = {field.name for field in self.fields}
        if classes is not None and class_field is None:
            class_field = self._first_label()
        number, n_tasks = _task_numbers(task)
        self._prefix = f"{number:06d}-" if n_tasks else ""
        arguments: dict[str, Any] = dict(
            path=self.path,
            fields=[(f.name, _TYPES[f.type], flags_of(f), f.shape) for f in self.fields],
            class_field=_check.text("class_field", class_field) if classes is not None else None,
            classes=_class_names(classes),
            mode=_mode_number(mode),
            quality=_check.integer("quality", quality, 1, 100),
            max_side=_check.integer("max_side", max_side, 0, 2**31),
            short_side=_check.integer("short_side", short_side, 0, 2**31),
            raw_share=_check.real("raw_share", raw_share, 0, 1),
            check_decode=_check.flag("check_decode", check_decode),
            sixteen_bit=_SIXTEEN_BIT[_check.word("sixteen_bit", sixteen_bit, _SIXTEEN_BIT)],
            no_index=not _check.flag("index", index),
            progressive=_PROGRESSIVE[_check.word("progressive", progressive, _PROGRESSIVE)],
            block_samples=_check.integer("block_samples", block_samples, 1, 2**31),
            shard_bytes=_check.size("shard_size", shard_size),
            name=_check.text("name", name),
            remote=options,
            work=None if work is None else _check.text("work", _check.path(work, "work")),
            task=number,
            n_tasks=n_tasks,
            codec=_CODECS[_check.word("codec", codec, _CODECS)],
            smart_threshold=_check.size("smart_threshold", smart_threshold),
            in_place=in_place,
        )
        self._core = _when_free(wait, lambda: _core.Writer(**arguments))
        self._n = 0
        self._finished = False
        if options is not None:
            _remote.opened(self)

    def _first_label(self) -> str:
        for field in self.fields:
            if field.type == "i64" and not field.shape:
                return field.name
        raise InvalidError("classes: expected an i64 field without a shape, found none")

    def add(self, key: str | bytes | None = None, /, **values: Any) -> None:
        """Add a sample: its key and a value for every field. Without a key, the key is the number
        of the sample, in a task after the number of the task: "000003-000000000017".

        image    the bytes of a JPEG, PNG or WebP file; None: no image
        clip     a list of such bytes, or (frames, times in ns). With in_place=True: (path of a
                 video, times in ns of consecutive frames, from the start of the file)
        numbers  a number, an array or nested lists
        text?, json?, bytes?, f32[*]?
                 None means a missing value. To store JSON's null in "json?", pass b"null".

        An image that cannot be decoded raises DecodeError; you can then add the next sample.
        """
        if "key" not in self._names and key is None:
            key = values.pop("key", None)
        if key is None:
            key = f"{self._prefix}{self._n:012d}"
        if isinstance(key, str):
            key = _encoded("key", key)
        if not isinstance(key, bytes):
            raise TypeError(f"key: expected str or bytes, found {_check.shown(key)}")
        if values.keys() != self._names:
            raise InvalidError(self._difference(values))
        self._core.add(key, [_convert(f, values[f.name]) for f in self.fields])
        self._n += 1

    def _difference(self, values: Mapping[str, Any]) -> str:
        unknown = [name for name in values if name not in self._names]
        if unknown:
            near = _check.nearest(unknown[0], self._names)
            return f"the schema has no field {unknown[0]!r}{near}"
        missing = [field.name for field in self.fields if field.name not in values]
        return f"field {missing[0]!r} has no value"

    def __len__(self) -> int:
        """The number of samples added."""
        return self._n

    def finish(self) -> int:
        """Publish the pack, or complete the task. Returns the number of samples added."""
        self._finished = True
        return self._core.finish()

    def close(self) -> None:
        """Discard the pack, unless finish() was called. A task is then not complete."""
        self._core.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None:
            self.close()
        elif not self._finished:
            self.finish()


def finalise(
    path: str | os.PathLike[str],
    *,
    tasks: int | None = None,
    storage_options: _remote.StorageOptions | None = None,
    work: str | os.PathLike[str] | None = None,
    wait: float = 0,
) -> int:
    """Join the parts that all tasks of a pack wrote, and publish the pack. Returns the number of
    samples.

    tasks            the number of tasks, needed if they were started with task=(i, None)
    storage_options  for an s3:// URL, as in penstock.open
    work             for an s3:// URL: a local directory for temporary files
    wait             how many seconds to wait if a task is still running in the directory

    Tasks that are not complete raise NotFoundError, which names them. A key in two tasks raises
    ExistsError. Both leave everything in place: run the task again, then finalise(). If the pack is
    published and what the tasks left cannot be removed, a warning says how to remove it.
    """
    place = _check.path(path)
    options, _ = _remote.check(place, storage_options)
    n = 0 if tasks is None else _check.integer("tasks", tasks, 1, _MOST_TASKS)
    folder = None if work is None else _check.text("work", _check.path(work, "work"))
    samples, not_removed = _when_free(wait, lambda: _core.finalise(place, n, options, folder))
    if not_removed:
        warnings.warn(
            f"penstock: {place}: the pack is published, but what the tasks left could not be "
            f"removed ({not_removed}); remove it with 'penstock gc --abandon {place}'",
            stacklevel=2,
        )
    return samples


def write(
    path: str | os.PathLike[str],
    samples: Iterable[Mapping[str, Any]],
    schema: Mapping[str, str],
    **settings: Any,
) -> int:
    """Write a pack from dicts of field name to value. An item "key" sets the key; without it, keys
    are numbers. The settings are those of Writer. Returns the number of samples."""
    with Writer(path, schema, **settings) as writer:
        for sample in _samples(samples):
            writer.add(None, **sample)
    return len(writer)


def _samples(samples: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The samples as dicts. Exceptions of the caller's iterator pass through unchanged."""
    try:
        each = iter(samples)
    except TypeError:
        raise TypeError(
            f"samples: expected dicts of field name to value, found {_check.shown(samples)}"
        ) from None
    for number, sample in enumerate(each):
        if not isinstance(sample, Mapping) or not all(isinstance(name, str) for name in sample):
            raise TypeError(
                f"samples: expected a dict of field name to value, found {_check.shown(sample)} "
                f"as sample {number}"
            )
        yield dict(sample)
