# SPDX-License-Identifier: Apache-2.0
"""Clips: sequences of frames that are read on access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from . import _check, _core
from ._error import InvalidError


class Clip(Sequence[bytes]):
    """The frames of a clip, read on access.

    clip[3]        the stored bytes of one frame
    clip[3:30:2]   another Clip; slicing reads only the pack's index
    list(clip)     the bytes of all frames, in one read
    clip.decode()  the pixels
    """

    __slots__ = ("_core", "_field", "_frames", "_origin", "_sample")

    def __init__(
        self, core: _core.Pack, sample: int, field: int, frames: range, origin: str
    ) -> None:
        self._core = core
        self._sample = sample
        self._field = field
        self._frames = frames
        self._origin = origin

    @property
    def numbers(self) -> range:
        """The frame numbers in the stored clip."""
        return self._frames

    @property
    def timestamps(self) -> list[int]:
        """The time of each frame in nanoseconds, from the start of the stored clip."""
        times = self._core.frame_times(self._sample, self._field)
        return [times[frame] for frame in self._frames]

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Clip: ...
    def __getitem__(self, at: int | slice) -> bytes | Clip:
        if isinstance(at, slice):
            frames = self._frames[at]
            return Clip(self._core, self._sample, self._field, frames, self._origin)
        number = _check.whole("frame", at)
        if not -len(self) <= number < len(self):
            raise IndexError(f"no frame {_check.shown(number)}: the clip has {len(self)} frames")
        frame = self._frames[number]
        return self._core.frames(self._sample, self._field, frame, 1, 1)[0]

    def _ascending(self) -> tuple[range, bool]:
        """The frames in ascending order, and whether the order was reversed."""
        turned = self._frames.step < 0
        return self._frames[::-1] if turned else self._frames, turned

    def _read(self) -> list[bytes]:
        frames, turned = self._ascending()
        found = self._core.frames(
            self._sample, self._field, frames.start, frames.step, len(frames)
        )
        return found[::-1] if turned else found

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._read())

    def decode(self, mode: str = "rgb") -> Any:
        """Decode the frames into a NumPy array of uint8 with the shape [frames, height, width, 3]
        (mode "gray": 1 channel). The pixels are upright and equal those that a Loader returns. All
        frames must have the same size."""
        import numpy as np

        channels = {"rgb": 3, "gray": 1}[_check.word("mode", mode, ("rgb", "gray"))]
        if not self._frames:
            raise InvalidError("decode: the clip has no frames")
        frames, turned = self._ascending()
        data, height, width = self._core.pixels(
            self._sample, self._field, frames.start, frames.step, len(frames), channels
        )
        array = np.frombuffer(data, np.uint8).reshape(len(frames), height, width, channels)
        return array[::-1] if turned else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.decode()
        return array if dtype is None else array.astype(dtype)

    def __eq__(self, other: object) -> bool:
        """True for any sequence with the same stored bytes."""
        if isinstance(other, Clip):
            other = other._read()
        if not isinstance(other, (list, tuple)):
            return NotImplemented
        return len(self) == len(other) and self._read() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} frames of {self._origin}>"
