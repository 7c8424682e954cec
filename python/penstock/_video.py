# SPDX-License-Identifier: Apache-2.0
"""Chooses the video decoder of the package penstock-video, if that is installed. Importing this
module does it, so it happens once: when a pack with clips is opened, or the command starts."""

from __future__ import annotations

import os

from . import _core


def _choose() -> None:
    if os.environ.get("PENSTOCK_VIDEO_LIBRARY"):
        return
    try:
        import penstock_video
    except ModuleNotFoundError:
        return
    # A directory that happens to have this name is a package without a path.
    path = getattr(penstock_video, "PATH", None)
    if path is not None:
        _core.video_use(os.fsencode(path))


_choose()
