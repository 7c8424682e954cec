# SPDX-License-Identifier: Apache-2.0
"""What a conversion has done."""

from __future__ import annotations

import sys
import time
from typing import NamedTuple


class Progress(NamedTuple):
    """What penstock.convert has done so far. The last one is its result.

    samples  rows written
    skipped  rows left out, because an image is broken
    bad      key and reason of the first 100 of these
    n_bytes  bytes of images, texts and other data in the rows written
    n_rows   rows of the dataset; None: not known before they are read
    """

    samples: int
    skipped: int
    bad: list[tuple[str, str]]
    n_bytes: int
    n_rows: int | None


class Line:
    """The progress line of a terminal."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._shown = False

    def __call__(self, done: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= 0.2:
            self._last, self._shown = now, True
            sys.stderr.write(f"\r{self.text(done, now - self._start)}\x1b[K")
            sys.stderr.flush()

    def text(self, done: Progress, seconds: float) -> str:
        text = f"{done.samples:,} samples, {done.n_bytes / 1e6 / max(seconds, 1e-9):.1f} MB/s"
        rows = done.samples + done.skipped
        if done.n_rows and rows:
            left = int(seconds * max(done.n_rows - rows, 0) / rows)
            text += f", {100 * rows // done.n_rows} %, {left // 60}:{left % 60:02d} left"
        return text

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
