# SPDX-License-Identifier: Apache-2.0
"""The pixels that every loader has to return, made by ffmpeg and Pillow."""

from __future__ import annotations

import pathlib
from typing import Any

from ..errors import Absent
from . import encode, sets

EXACT = "neighbor+accurate_rnd+full_chroma_int"  # of ffmpeg's conversion from YUV


def _frames(task: dict[str, Any], file: pathlib.Path, width: int, height: int) -> Any:
    """Frames of the middle of a video, uint8 [T, height, width, 3]."""
    import numpy as np

    span = (task["frames"] - 1) * task["stride"] + 1
    first = (encode.frames_of(file) - span) // 2
    chosen = f"select=between(n\\,{first}\\,{first + span - 1})"
    data = encode.run("ffmpeg", "-nostdin", "-v", "error", "-i", file, "-vf", chosen, "-vsync",
                      "passthrough", "-frames:v", str(span), "-sws_flags", EXACT, "-f", "rawvideo",
                      "-pix_fmt", "rgb24", "-")
    return np.frombuffer(data, np.uint8).reshape(span, height, width, 3)[:: task["stride"]]


def _shaped(task: dict[str, Any], frames: Any) -> Any:
    """The center box, resized: uint8 [3, T, size, size]."""
    import numpy as np
    from PIL import Image

    crop, size = task["crop"], (task["size"], task["size"])
    top, left = (frames.shape[1] - crop) // 2, (frames.shape[2] - crop) // 2
    boxes = frames[:, top : top + crop, left : left + crop]
    small = [Image.fromarray(box).resize(size, Image.Resampling.BILINEAR) for box in boxes]
    return np.stack([np.asarray(one) for one in small]).transpose(3, 0, 1, 2)


def save(task: dict[str, Any], of: sets.Set, width: int, height: int,
         file: pathlib.Path) -> pathlib.Path:
    """The first batch of an epoch, of the middle of each video; made once per run."""
    try:
        import numpy as np
        import PIL  # noqa: F401
    except ImportError as error:
        raise Absent(f"frames are checked with NumPy and Pillow: {error}. Run "
                     "pip install numpy pillow") from None
    if not file.exists():
        names = of.names()
        clips = {name: _shaped(task, _frames(task, of.videos / name, width, height))
                 for name in names[: task["batch"]]}
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, np.stack([clips[names[i % len(names)]] for i in range(task["batch"])]))
    return file
