# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr, with the time left."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

BAR = 24
SECONDS_BETWEEN_LINES = 30.0


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


class Progress:
    """A bar on a terminal; elsewhere a line every half minute.

    done  steps that an earlier process has done: they do not count for the time left
    """

    def __init__(self, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        self.total, self.done, self.before = total, done, done
        self.stream = sys.stderr if stream is None else stream
        self.began = self.printed = time.monotonic()
        self.terminal = self.stream.isatty()

    def left(self) -> float | None:
        """Seconds left, by the mean of the steps so far."""
        mine = self.done - self.before
        if mine <= 0:
            return None
        return (time.monotonic() - self.began) / mine * (self.total - self.done)

    def _text(self, what: str) -> str:
        left = self.left()
        end = "" if left is None else f", {duration(left)} left"
        return f"{self.done}/{self.total}{end}  {what}"

    def _show(self, what: str) -> None:
        if self.terminal:
            full = BAR * self.done // max(1, self.total)
            text = f"[{'#' * full}{'.' * (BAR - full)}] {self._text(what)}"
            columns = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r\x1b[K{text[:columns]}")
        elif time.monotonic() - self.printed >= SECONDS_BETWEEN_LINES:
            self.printed = time.monotonic()
            self.stream.write(self._text(what) + "\n")
        self.stream.flush()

    def start(self, what: str) -> None:
        """Name what runs now."""
        self._show(what)

    def step(self, what: str = "") -> None:
        """One step is done."""
        self.done += 1
        self._show(what)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.stream.write(("\r\x1b[K" if self.terminal else "") + text + "\n")
        self.stream.flush()

    def close(self) -> None:
        if self.terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
