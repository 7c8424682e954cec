# SPDX-License-Identifier: Apache-2.0
"""The progress of tasks: counts, rates and the time left, and how they are printed."""

from __future__ import annotations

import collections
import dataclasses
import json
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

WINDOW_S = 20.0  # of the rates
PLAIN_S = 30.0  # between two lines of a log
JSON_S = 1.0
TERMINAL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of packing.

    stage               "plan", "pack" or "finalise"
    tasks_done, tasks   complete tasks, and all
    samples_done        packed, also by earlier runs
    samples             in the plan
    samples_per_second  over the last 20 s
    bytes_per_second    bytes of inputs that were read, over the last 20 s
    seconds             since the start of the call
    seconds_left        expected time to the end of the last task; None = unknown
    broken              broken inputs so far
    retries             how often a task was started again
    """

    stage: str
    tasks_done: int = 0
    tasks: int = 0
    samples_done: int = 0
    samples: int = 0
    samples_per_second: float = 0.0
    bytes_per_second: float = 0.0
    seconds: float = 0.0
    seconds_left: float | None = None
    broken: int = 0
    retries: int = 0

    def pieces(self) -> list[str]:
        """The most important first."""
        if self.stage != "pack":
            return [self.stage]
        share = self.samples_done / self.samples if self.samples else 0.0
        found = [
            f"{self.stage} {int(100 * share)} %",
            f"{self.tasks_done:,} of {self.tasks:,} tasks",
            f"{self.samples_done:,} of {self.samples:,} samples",
            f"{self.samples_per_second:,.0f} samples/s",
            f"{self.bytes_per_second / 1e6:,.1f} MB/s",
        ]
        if self.seconds_left is not None:
            found.append(_time(self.seconds_left) + " left")
        if self.broken:
            found.append(f"{self.broken:,} bad")
        if self.retries:
            found.append(f"{self.retries:,} retries")
        return found


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclasses.dataclass
class _Seen:
    """The last known state of a task."""

    attempt: str
    done: int
    bytes: int
    bad: int
    complete: bool = False


class Meter:
    """Sums up the progress of tasks. What an earlier run has packed counts as done, but not in the
    rates."""

    def __init__(self, tasks: int, samples: int, start: float) -> None:
        self._tasks, self._samples, self._start = tasks, samples, start
        self._seen: dict[int, _Seen] = {}
        self._work_samples = self._work_bytes = 0  # packed since the start
        self._times: collections.deque[tuple[float, int, int]] = collections.deque()
        self._starts = 0

    def _count(self, last: _Seen | None, now: _Seen) -> None:
        if last and (last.attempt == now.attempt or now.complete):
            self._work_samples += max(0, now.done - last.done)
            self._work_bytes += max(0, now.bytes - last.bytes)

    def running(self, starts: int, latest: Mapping[int, Mapping[str, Any]]) -> None:
        """What the board has."""
        self._starts = max(self._starts, starts)
        for task, found in latest.items():
            last = self._seen.get(task)
            if last and last.complete:
                continue
            now = _Seen(found["attempt"], found["done"], found["done_bytes"], found["bad"])
            self._count(last, now)
            self._seen[task] = now

    def complete(self, task: int, result: Mapping[str, Any]) -> None:
        last = self._seen.get(task)
        bad = result["broken_inputs_left_out"]
        done, nbytes = result["samples"], result["bytes"]["source"]
        now = _Seen("", done + bad, nbytes, bad, complete=True)
        if last is None and not result["resumed"]:
            last = _Seen("", 0, 0, 0)
        self._count(last, now)
        self._seen[task] = now

    @property
    def retries(self) -> int:
        return max(0, self._starts - self._tasks)

    @property
    def any_started(self) -> bool:
        return self._starts > 0 or bool(self._seen)

    @property
    def tasks_done(self) -> int:
        return sum(seen.complete for seen in self._seen.values())

    def _rates(self, now: float) -> tuple[float, float]:
        self._times.append((now, self._work_samples, self._work_bytes))
        while len(self._times) > 2 and now - self._times[0][0] > WINDOW_S:
            self._times.popleft()
        begin, samples, nbytes = self._times[0]
        passed = max(now - begin, 1e-3)
        return (self._work_samples - samples) / passed, (self._work_bytes - nbytes) / passed

    def progress(self, now: float) -> Progress:
        per_second, bytes_per_second = self._rates(now)
        done = sum(seen.done for seen in self._seen.values())
        left = max(0, self._samples - done)
        return Progress(
            stage="pack",
            tasks_done=self.tasks_done,
            tasks=self._tasks,
            samples_done=done,
            samples=self._samples,
            samples_per_second=per_second,
            bytes_per_second=bytes_per_second,
            seconds=now - self._start,
            seconds_left=left / per_second if per_second > 0 else None,
            broken=sum(seen.bad for seen in self._seen.values()),
            retries=self.retries,
        )


class Printer:
    """Prints progress: one line on a terminal, otherwise a line of text every 30 seconds, or a line
    of JSON every second."""

    def __init__(self, to: TextIO | None = None, as_json: bool = False) -> None:
        self._to = to or sys.stderr
        self._json, self._terminal = as_json, not as_json and self._to.isatty()
        self._next, self._columns, self._stage = time.monotonic(), 0, ""
        self._interval = JSON_S if as_json else TERMINAL_S if self._terminal else PLAIN_S
        if self._interval == PLAIN_S:
            self._next += PLAIN_S

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        is_new = progress.stage != self._stage and self._interval < PLAIN_S
        if now < self._next and not is_new:
            return
        self._stage, self._next = progress.stage, now + self._interval
        if self._json:
            self._write(json.dumps(dataclasses.asdict(progress)) + "\n")
        elif self._terminal:
            self._line("  ".join(self._fitting(progress)))
        else:
            self._write(f"penstock: {', '.join(progress.pieces())}\n")

    def _fitting(self, progress: Progress) -> list[str]:
        left, found = shutil.get_terminal_size().columns - 1, []
        for piece in progress.pieces():
            left -= len(piece) + 2
            if left + 2 < 0:
                break
            found.append(piece)
        return found

    def _line(self, text: str) -> None:
        self._write(f"\r{text}{' ' * max(0, self._columns - len(text))}\r")
        self._columns = len(text)

    def _write(self, text: str) -> None:
        self._to.write(text)
        self._to.flush()

    def message(self, text: str) -> None:
        self.close()
        self._write(f"penstock: {text}\n")

    def close(self) -> None:
        """Removes the line."""
        if self._columns:
            self._line("")
