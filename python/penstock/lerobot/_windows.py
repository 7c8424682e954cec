# SPDX-License-Identifier: Apache-2.0
"""penstock.lerobot.windows: the pipeline that loads what LeRobot's delta_timestamps select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import _check
from .._error import InvalidError
from .._pack import Pack
from ._rows import TOLERANCE_S


def _frames(name: str, deltas: object, fps: float) -> list[int]:
    """Seconds as numbers of frames."""
    if isinstance(deltas, (str, bytes)) or not hasattr(deltas, "__iter__"):
        raise TypeError(f"{name}: expected a list of seconds, found {_check.shown(deltas)}")
    found = []
    for delta in deltas:
        frames = _check.real(f"{name}: delta", delta, -1e6, 1e6, " s") * fps
        if abs(frames - round(frames)) > TOLERANCE_S * fps:
            raise InvalidError(f"{name}: expected multiples of 1/{fps:g} s, found {delta} s")
        found.append(round(frames))
    if not found:
        raise InvalidError(f"{name}: expected at least one delta, found none")
    return found


def _series(name: str, frames: Sequence[int]) -> tuple[int, int, int]:
    """Their number, the distance between them, and the first one."""
    step = frames[1] - frames[0] if len(frames) > 1 else 1
    if step < 1 or any(b - a != step for a, b in zip(frames, frames[1:])):
        raise InvalidError(
            f"{name}: expected deltas that rise in equal steps, found {_check.shown(frames)} "
            "frames; load all frames between the first and the last one, and select from them"
        )
    return len(frames), step, frames[0]


def _rate(pack: Pack) -> float:
    if not any(f.name == "fps" and f.type == "f64" and not f.shape for f in pack.fields):
        raise InvalidError("expected a pack of penstock.lerobot.index, found one without fps")
    rates = set(pack.column("fps").tolist())
    if len(rates) != 1 or not min(rates) > 0:
        raise InvalidError(f"expected one frame rate, found {_check.shown(sorted(rates))}")
    return float(rates.pop())


_SIZED = {"resize", "center_crop", "random_crop", "random_resized_crop"}


def _stored_size(pack: Pack, name: str, after: str) -> str:
    """The operation that tells a Loader that all videos of a camera have one size, if they do and
    none of the operations `after` sets it."""
    if _SIZED.intersection(op.split()[0] for op in after.split("|") if op.strip()):
        return ""
    sizes = {(int(w), int(h)) for w, h in pack.column(name, "size")}
    if len(sizes) != 1:
        return ""
    ((w, h),) = sizes
    return f" | resize {h},{w}"


def windows(
    pack: Pack, delta_timestamps: Mapping[str, Sequence[float]], images: str = ""
) -> dict[str, str]:
    """The pipeline of a Loader with frames="length" that loads what LeRobot loads for each frame.

    pack              a pack of penstock.lerobot.index
    delta_timestamps  a dict of field name to seconds from the frame, as in LeRobotDataset. They
                      rise in equal steps: [-0.1, 0] or [i / 30 for i in range(50)]
    images            further operations of all cameras: "resize 224 | tensor f32 ntchw"; without
                      a resize or a crop, the images of a camera keep the size of its videos

    The loader returns a window for each of these fields, and NAME_mask, which is the inverse of
    LeRobot's NAME_is_pad.
    """
    fps = _rate(pack)
    fields = {field.name: field for field in pack.fields}
    after = _check.text("images", images)
    pipeline = {}
    for name, deltas in delta_timestamps.items():
        field = fields.get(name)
        if field is None or not (field.type == "clip" or field.ragged):
            near = "" if field else _check.nearest(str(name), fields)
            raise InvalidError(
                f"delta_timestamps: expected cameras and numbers of frames, found "
                f"{_check.shown(name)}{near}"
            )
        n, step, first = _series(name, _frames(name, deltas, fps))
        if field.type == "clip":
            clip = f"decode | clip {n} {step} at={first}{_stored_size(pack, name, after)}"
            pipeline[name] = f"{clip} | {after}" if after else clip
        else:
            pipeline[name] = f"ragged {n} at={first} stride={step}"
    return pipeline
