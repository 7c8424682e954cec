# SPDX-License-Identifier: Apache-2.0
"""Decode image files that are in memory, without a pack."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Union

from . import _check, _core
from ._error import Error, InvalidError, LimitError, NoMemoryError

# The number in the library, and the shape of a pixel.
_MODES: dict[str, tuple[int, tuple[int, ...]]] = {
    "rgb": (0, (3,)), "gray": (1, (1,)), "mask": (2, ())
}
_FILTERS = ("bilinear", "nearest", "bicubic", "lanczos", "box")  # in the order of the library
_SIDE = 16384
_THREADS = 256

Box = Sequence[int]
OnBad = Union[str, Callable[[int, Error], object]]


class _Request(NamedTuple):
    """What is the same for all images of a call."""

    height: int
    width: int
    mode: int
    filter: int
    threads: int
    pixel: tuple[int, ...]

    def run(
        self, datas: list[bytes], boxes: list[Any], outs: list[Any], single: bool = False
    ) -> list[Any]:
        return _core.decode(datas, boxes, outs, *self[:5], single)


def _request(size: Any, filter: str, mode: str, threads: int | None) -> _Request:
    number, pixel = _MODES[_check.word("mode", mode, _MODES)]
    chosen = _FILTERS.index(_check.word("filter", filter, _FILTERS))
    count = 0 if threads is None else _check.integer("threads", threads, 1, _THREADS)
    return _Request(*_size(size), number, chosen, count, pixel)


def _numbers(name: str, value: Any, n: int, expected: str) -> list[Any]:
    """The n items of a sequence of any type."""
    try:
        if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)):
            raise TypeError
        items = list(itertools.islice(iter(value), n + 1))
    except Exception:
        raise TypeError(f"{name}: expected {expected}, found {_check.shown(value)}") from None
    if len(items) != n:
        raise InvalidError(f"{name}: expected {expected}, found {_check.shown(value)}")
    return items


def _size(value: Any) -> tuple[int, int]:
    if value is None:
        return 0, 0
    try:
        sides = [_check.whole("size", value)] * 2
    except TypeError:
        expected = "an integer, or height and width"
        sides = [_check.whole("size", side) for side in _numbers("size", value, 2, expected)]
    for side in sides:
        if side < 1:
            raise InvalidError(f"size: expected 1 or more, found {_check.shown(side)}")
        if side > _SIDE:
            raise LimitError(
                f"size: expected at most {_SIDE} pixels per side, found {_check.shown(side)}"
            )
    return sides[0], sides[1]


def _box(name: str, value: Any) -> tuple[int, int, int, int] | None:
    """As the library takes it: left, top, width, height."""
    if value is None:
        return None
    top, left, height, width = _numbers(name, value, 4, "(top, left, height, width)")
    most = 2**32 - 1
    return (
        _check.integer(f"{name}: left", left, 0, most),
        _check.integer(f"{name}: top", top, 0, most),
        _check.integer(f"{name}: width", width, 1, most),
        _check.integer(f"{name}: height", height, 1, most),
    )


def _bytes(name: str, value: Any) -> bytes:
    """Bytes that nobody changes while they are decoded: other buffers are copied."""
    if isinstance(value, bytes):
        return value
    try:
        return memoryview(value).tobytes()
    except MemoryError:
        raise
    except Exception:
        pass
    raise TypeError(
        f"{name}: expected the bytes of a JPEG, PNG or WebP file, found {_check.shown(value)}"
    )


def _array(*shape: int) -> Any:
    import numpy as np

    try:
        return np.empty(shape, np.uint8)
    except (MemoryError, ValueError):
        raise NoMemoryError(f"out of memory: an array of the shape {shape}") from None


def decode(
    data: Any,
    box: Box | None = None,
    size: int | Sequence[int] | None = None,
    filter: str = "bilinear",
    mode: str = "rgb",
    out: Any = None,
) -> Any:
    """Decode a JPEG, PNG or WebP file to pixels of uint8. The pixels are upright and equal those
    that a Loader returns. Other Python threads run in the meantime.

    data    the bytes of the file: bytes, or any object with the buffer protocol
    box     (top, left, height, width) of the part to decode, in upright pixels; None: everything
    size    (height, width) to resize to; an integer stands for both; None: the size of the box
    filter  bilinear, nearest, bicubic, lanczos or box
    mode    "rgb": shape [height, width, 3]; "gray": [height, width, 1]; "mask": [height, width],
            the values of a gray or palette image as stored, resized by "nearest"
    out     memory for the result: a NumPy array, a torch tensor, or any other contiguous memory of
            uint8 with the shape of the result; None: a new NumPy array

    Returns the array or `out`. With a box, damage in other parts of a JPEG is not noticed.
    """
    request = _request(size, filter, mode, 1)
    datas, boxes = [_bytes("data", data)], [_box("box", box)]
    height, width = request.height, request.width
    if size is None:
        height, width = _checked(request.run(datas, boxes, [], True))
    shape = (height, width, *request.pixel)
    pixels = _array(*shape) if out is None else out
    _checked(request.run(datas, boxes, [(pixels, shape)], True))
    return pixels


def _checked(results: list[Any]) -> tuple[int, int]:
    """Height and width of a single image."""
    found = results.pop()
    try:
        if isinstance(found, Error):
            raise found
        height, width = found
    finally:
        del found  # see _report
    return height, width


def _report(results: list[Any], call: Callable[[int, Error], object]) -> None:
    """Calls it with every error. A lack of memory is not the file's fault.

    The variables are deleted: an error that is raised refers to this frame, and so to itself. It
    would keep files and pixels alive until the garbage collector runs.
    """
    found: Any = None
    try:
        for i, found in enumerate(results):
            if isinstance(found, NoMemoryError):
                raise found
            if isinstance(found, Error):
                call(i, found)
    finally:
        del found, results


def _each(name: str, value: Any, expected: str) -> Iterator[Any]:
    try:
        if isinstance(value, (str, bytes, bytearray, memoryview, dict)):
            raise TypeError
        items: Iterator[Any] = iter(value)
    except Exception:
        raise TypeError(f"{name}: expected {expected}, found {_check.shown(value)}") from None
    return items


def _files(value: Any) -> list[bytes]:
    """Files, one each: the items of an array of numbers have the buffer protocol too."""
    try:
        is_one = memoryview(value).format != "O"
    except Exception:
        is_one = False
    expected = "a list of files as bytes"
    if is_one:
        raise TypeError(f"datas: expected {expected}, found {_check.shown(value)}")
    return [_bytes(f"datas: {i}", data) for i, data in enumerate(_each("datas", value, expected))]


def _boxes(value: Any, n: int) -> list[tuple[int, int, int, int] | None]:
    if value is None:
        return [None] * n
    each = itertools.islice(_each("boxes", value, "a list of boxes"), n + 1)
    boxes = [_box(f"boxes: {i}", box) for i, box in enumerate(each)]
    if len(boxes) != n:
        found = len(boxes) if len(boxes) < n else "more"
        raise InvalidError(f"boxes: expected {n}, one for each image, found {found}")
    return boxes


def decode_batch(
    datas: Iterable[Any],
    boxes: Iterable[Box | None] | None = None,
    size: int | Sequence[int] | None = None,
    threads: int | None = None,
    filter: str = "bilinear",
    mode: str = "rgb",
    out: Any = None,
    on_bad: OnBad = "raise",
) -> Any:
    """Decode many files in parallel. The parameters of decode() have the same meaning here.

    datas    the bytes of each file
    boxes    a box or None for each file; None: all images are decoded completely
    size     with a size, the result is one array [images, height, width, 3]; without, it is a list
             of arrays
    threads  number of threads; None: one per core
    out      memory for the array; needs a size
    on_bad   "raise": raise the error of the first file that cannot be decoded; its `sample` is the
             number of the file. A function: it is called with the number and the error of every
             such file, whose pixels are 0 in an array, and None in a list. A lack of memory is
             always raised.
    """
    request = _request(size, filter, mode, threads)
    call = _on_bad(on_bad)
    if out is not None and size is None:
        raise InvalidError("out: expected a size too, because the images can differ in size")
    files = _files(datas)
    places = _boxes(boxes, len(files))
    if size is None:
        return _decode_list(request, files, places, call)
    shape = (len(files), request.height, request.width, *request.pixel)
    pixels = _array(*shape) if out is None else out
    _report(request.run(files, places, [(pixels, shape)]), call)
    return pixels


def _on_bad(value: Any) -> Callable[[int, Error], object]:
    if isinstance(value, str):
        _check.word("on_bad", value, ["raise"])
        return _raise
    if not callable(value):
        raise TypeError(f'on_bad: expected "raise" or a function, found {_check.shown(value)}')
    return value  # type: ignore[no-any-return]


def _raise(number: int, error: Error) -> None:
    try:
        raise error
    finally:
        del error  # see _report


def _decode_list(
    request: _Request, files: list[bytes], places: list[Any], call: Callable[[int, Error], object]
) -> list[Any]:
    """An array for each file; the headers give their sizes."""
    results = request._replace(threads=1).run(files, places, [])
    arrays = [None if isinstance(r, Error) else _array(*r, *request.pixel) for r in results]
    outs = [array if array is None else (array, array.shape) for array in arrays]
    decoded = request.run(files, places, outs)
    results = [a if isinstance(a, Error) else b for a, b in zip(results, decoded, strict=True)]
    try:
        _report(results, call)
        return [None if isinstance(r, Error) else a for r, a in zip(results, arrays, strict=True)]
    finally:
        del results, decoded
