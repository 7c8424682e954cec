# SPDX-License-Identifier: Apache-2.0
"""The conversion of a dataset, divided into tasks. Each task writes a part of the pack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any

from .. import _check
from .._error import DecodeError, InvalidError, LimitError, UnsupportedError
from .._writer import Writer, finalise
from . import _formats
from ._reader import Choice, Reader

TASKS = 64  # at most. They do not depend on the number of workers, so neither does the pack
CLASSES = 1 << 16  # at most, if they are found from names
REPORT_SECONDS = 0.2
BAD_LISTED = 100


@dataclass
class Job:
    """What every process needs to know. It is pickled for the workers."""

    format: str
    source: str
    choice: Choice
    out: str
    skip: bool  # rows with broken images, instead of failing
    settings: dict[str, Any]  # of the Writer
    schema: dict[str, str] = field(default_factory=dict)
    classes: list[str] | None = None
    class_field: str | None = None
    numbers: dict[str, int] | None = None  # of class names, if the label is a text
    tasks: int = 1

    def open(self) -> Reader:
        return _formats.open_source(self.format, self.source, self.choice)


@dataclass
class Report:
    """What was done since the last report."""

    samples: int = 0
    n_bytes: int = 0
    skipped: int = 0
    bad: list[tuple[str, str]] = field(default_factory=list)  # key and reason, BAD_LISTED at most

    def add(self, other: Report) -> None:
        self.samples += other.samples
        self.n_bytes += other.n_bytes
        self.skipped += other.skipped
        self.bad = (self.bad + other.bad)[:BAD_LISTED]


def prepare(job: Job, classes: Sequence[str] | None) -> Reader:
    """Open the dataset, and decide on the fields, the classes and the number of tasks."""
    reader = job.open()
    job.schema = dict(reader.schema)
    job.class_field = reader.class_field
    names = list(reader.classes or ()) if classes is None else list(classes)
    if job.class_field is not None and job.schema[job.class_field].rstrip("?") == "text":
        names = names or _class_names(job, job.class_field)
        job.numbers = {name: number for number, name in enumerate(names)}
        job.schema[job.class_field] = "i64"
    job.classes = names or None
    job.tasks = max(1, min(reader.parts, TASKS))
    if min(reader.part_rows or [0]) < 0:
        raise InvalidError(f"{job.source}: a part has a negative number of rows")
    return reader


def _class_name(value: Any) -> Any:
    """Some formats have texts as bytes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _class_names(job: Job, label: str) -> list[str]:
    """The different texts of a column, sorted."""
    choice = Choice({label: ""}, None, label)
    reader = _formats.open_source(job.format, job.source, choice)
    found: set[Any] = set()
    for part in range(reader.parts):
        for _, values in reader.rows(part):
            found.add(_class_name(values[label]))
            if len(found) > CLASSES:
                raise LimitError(
                    f"{job.source}: column {label!r} has more than {CLASSES} different values; "
                    "expected names of classes"
                )
    return sorted(name for name in found if isinstance(name, str))


def _number(job: Job, value: Any) -> int:
    """The number of a class name."""
    numbers, value = job.numbers or {}, _class_name(value)
    if value not in numbers:
        raise InvalidError(
            f"column {job.class_field!r}: expected the name of a class, found "
            f"{_check.shown(value)}{_check.nearest(str(value), list(numbers))}"
        )
    return numbers[value]


def _all_parts(job: Job, reader: Reader, task: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a task of entire parts."""
    first, end = (reader.parts * t // job.tasks for t in (task, task + 1))
    for part in range(first, end):
        yield from reader.rows(part)


def _starts(job: Job, part_rows: Sequence[int]) -> list[int]:
    """The first row of each task, and the end: near the start of a part, and at a multiple of the
    samples of a block. So only the last block of the pack is incomplete: finalise puts incomplete
    blocks last, which would change the order."""
    defaults: Mapping[str, Any] = Writer.__init__.__kwdefaults__ or {}
    settings = {**defaults, **job.settings}
    block = _check.integer("block_samples", settings["block_samples"], 1, 2**31)
    ends = [0, *accumulate(part_rows)]
    starts = [ends[len(part_rows) * task // job.tasks] for task in range(job.tasks)]
    return [*(min(-(-start // block) * block, ends[-1]) for start in starts), ends[-1]]


def _row_range(
    job: Job, reader: Reader, part_rows: Sequence[int], task: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a task whose first row can be in the middle of a part."""
    first, end = _starts(job, part_rows)[task : task + 2]
    start = 0
    for part, n in enumerate(part_rows):
        low, high = max(first - start, 0), min(end - start, n)
        if low < high:
            found = islice(reader.rows(part), low, high if high < n else None)
            yield from _counted(job, found, part, high - low)
        start += n


def _counted(job: Job, rows: Iterator[Any], part: int, expected: int) -> Iterator[Any]:
    found = 0
    for row in rows:
        found += 1
        if found <= expected:
            yield row
    if found != expected:
        raise InvalidError(f"{job.source}: part {part} has not as many rows as it states")


def _rows(job: Job, reader: Reader, task: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a task. Tasks have neighboring rows, so that the order is that of the source."""
    part_rows = reader.part_rows
    if part_rows is None:
        rows = _all_parts(job, reader, task)
    else:
        rows = _row_range(job, reader, part_rows, task)
    for key, values in rows:
        if job.numbers is not None and job.class_field is not None:
            values[job.class_field] = _number(job, values[job.class_field])
        yield key, values


def _size(values: Mapping[str, Any]) -> int:
    return sum(len(v) for v in values.values() if isinstance(v, (bytes, str)))


def _open_writer(job: Job, task: int) -> Writer:
    return Writer(
        job.out,
        job.schema,
        classes=job.classes,
        class_field=job.class_field,
        task=(task, job.tasks),
        **job.settings,
    )


def run_task(job: Job, reader: Reader, task: int, tell: Callable[[Report], None]) -> None:
    """Write the part of the pack that is this task's. `tell` gets several reports a second."""
    report, last = Report(), time.monotonic()
    with _open_writer(job, task) as writer:
        for key, values in _rows(job, reader, task):
            try:
                writer.add(key, **values)
                report.samples += 1
                report.n_bytes += _size(values)
            except (DecodeError, UnsupportedError) as error:
                if not job.skip:
                    raise
                report.skipped += 1
                report.bad = [*report.bad, (key, str(error))][:BAD_LISTED]
            except InvalidError as error:
                raise InvalidError(f"{job.source}: row {key!r}: {error}") from None
            if time.monotonic() - last > REPORT_SECONDS:
                tell(report)
                report, last = Report(), time.monotonic()
    tell(report)


def publish(job: Job) -> None:
    names = ("storage_options", "work", "wait")
    finalise(job.out, **{name: job.settings[name] for name in names if name in job.settings})
