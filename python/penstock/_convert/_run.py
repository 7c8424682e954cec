# SPDX-License-Identifier: Apache-2.0
"""Run a conversion: its tasks, here or in worker processes, and then publish the pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _check
from .._error import LimitError
from . import _formats, _job, _pool
from ._progress import Progress
from ._reader import Choice

WAIT_SECONDS = 10  # for the workers of a run that was killed: they end by themselves
BAD_SHARE, BAD_LEAST = 1000, 10  # one row of so many may be broken, and as few


def run(
    source: str,
    out: str,
    format: str | None,
    columns: Mapping[str, str] | None,
    key: str | None,
    label: str | None,
    classes: Sequence[str] | None,
    max_bad: int | None,
    workers: int,
    progress: Callable[[Progress], object] | None,
    settings: Mapping[str, Any],
) -> Progress:
    """The arguments are those of penstock.convert, except max_bad: -1 stops at a broken row."""
    _formats.check_local(source)
    name = _formats.find(source) if format is None else format
    _check.word("format", name, _formats.FORMATS)
    settings = {"wait": WAIT_SECONDS, **settings}
    job = _job.Job(name, source, Choice(columns, key, label), out, max_bad != -1, settings)
    reader = _job.prepare(job, classes)
    n_rows = None if reader.part_rows is None else sum(reader.part_rows)
    account = _Account(n_rows, max_bad, progress)
    if workers == 1 or job.tasks == 1:
        for task in range(job.tasks):
            _job.run_task(job, reader, task, account.add)
    else:
        _pool.run(job, range(job.tasks), workers, account.add)
    account.check_end()
    _job.publish(job)
    return account.state()


class _Account:
    """Sums of the reports of all tasks."""

    def __init__(
        self,
        n_rows: int | None,
        max_bad: int | None,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._n_rows, self._max_bad, self._progress = n_rows, max_bad, progress
        self._sum = _job.Report()

    def state(self) -> Progress:
        done = self._sum
        return Progress(done.samples, done.skipped, list(done.bad), done.n_bytes, self._n_rows)

    def add(self, report: _job.Report) -> None:
        self._sum.add(report)
        if self._max_bad is not None or self._n_rows is not None:
            self._check(self._n_rows or 0)
        if self._progress is not None:
            self._progress(self.state())

    def check_end(self) -> None:
        self._check(self._sum.samples + self._sum.skipped)

    def _check(self, n_rows: int) -> None:
        limit = max(BAD_LEAST, n_rows // BAD_SHARE) if self._max_bad is None else self._max_bad
        if self._sum.skipped > max(limit, 0):
            key, reason = self._sum.bad[0]
            raise LimitError(
                f"{self._sum.skipped} rows have broken images, and {limit} are allowed; the first "
                f"is {_check.shown(key)}: {reason}. Allow more with max_bad= or --max-bad"
            )
