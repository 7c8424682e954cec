# SPDX-License-Identifier: Apache-2.0
"""The report of a run: FOLDER/report.jsonl, one JSON object a line.

The first line has the kind "parameters" and describes the run completely. Each further line is
written and synchronized to the disk at once, so a run that is killed loses at most one line.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import pathlib
import shlex
from typing import Any

from ..errors import LabError

FORMAT = 1
NAME = "report.jsonl"
Line = dict[str, Any]


def _finite(value: Any) -> Any:
    """NaN and infinity become null: JSON has no numbers for them."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    value = value.item() if hasattr(value, "item") else value  # of NumPy or torch
    return None if isinstance(value, float) and not math.isfinite(value) else value


def path_of(place: str | os.PathLike[str]) -> pathlib.Path:
    """The report of a folder, or the report itself."""
    path = pathlib.Path(place)
    return path / NAME if path.is_dir() else path


def _complete(data: bytes) -> tuple[list[Line], int]:
    """The lines that were written completely, and how many bytes they take."""
    lines: list[Line] = []
    end = 0
    texts = data.split(b"\n")[:-1]
    for number, text in enumerate(texts):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            if number == len(texts) - 1:
                break
            raise LabError(f"line {number + 1} is damaged: expected a JSON object") from None
        if not isinstance(line, dict) or "kind" not in line:
            raise LabError(f"line {number + 1} is no line of a report: expected a 'kind'")
        lines.append(line)
        end += len(text) + 1
    return lines, end


def _checked(lines: list[Line], path: pathlib.Path) -> list[Line]:
    if not lines or lines[0]["kind"] != "parameters":
        raise LabError(f"'{path}' is no report: its first line has no parameters")
    if lines[0].get("format") != FORMAT:
        raise LabError(
            f"'{path}' has format {lines[0].get('format')}; this version reads format {FORMAT}"
        )
    return lines


def _parse(data: bytes, path: pathlib.Path) -> tuple[list[Line], int]:
    try:
        return _complete(data)
    except LabError as error:
        raise LabError(f"cannot read report '{path}': {error}") from None


def read(place: str | os.PathLike[str]) -> list[Line]:
    """All complete lines of a report; PLACE is the run's folder or the file."""
    path = path_of(place)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabError(f"cannot read report '{path}': {error.strerror}") from None
    return _checked(_parse(data, path)[0], path)


def changes(old: Line, new: Line) -> list[str]:
    """How two first lines differ in what is measured: 'threads: 2 in the report, now 4'."""
    pairs = [("question", old.get("question"), new.get("question"))]
    before, now = old.get("parameters", {}), new.get("parameters", {})
    pairs += [(key, before.get(key), now.get(key)) for key in dict.fromkeys([*before, *now])]
    if before.keys() == now.keys() and all(x == y for _, x, y in pairs):
        ids = [[entry.get("id") for entry in head.get("inputs", [])] for head in (old, new)]
        pairs.append(("identity of the inputs", ids[0], ids[1]))
    return [f"{key}: {x!r} in the report, now {y!r}" for key, x, y in pairs if x != y]


class Report:
    """An open report. Only one process can have it open."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder)
        self.path = self.folder / NAME
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LabError(f"cannot write report '{self.path}': {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            data = self.path.read_bytes()
            self.lines, end = _parse(data, self.path)
            if end < len(data):
                os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)
        except BlockingIOError:
            os.close(self._file)
            raise LabError(f"'{self.path}' is in use: another penstock-lab writes it") from None
        except BaseException:
            os.close(self._file)
            raise

    @classmethod
    def create(cls, folder: str | os.PathLike[str], head: Line) -> Report:
        """A new report. HEAD has question, name, parameters, inputs, machine, versions, command."""
        report = cls(folder)
        if report.lines:
            report.close()
            raise LabError(f"'{report.path}' exists: expected a folder without a report")
        report.append("parameters", format=FORMAT, **head)
        return report

    @classmethod
    def resume(cls, folder: str | os.PathLike[str], head: Line | None = None) -> Report:
        """The report of a run to continue; a torn last line is dropped.

        head  if given, its parameters and inputs must be those of the report
        """
        if not path_of(folder).is_file():
            raise LabError(f"no run to continue in '{folder}': there is no {NAME}")
        report = cls(folder)
        try:
            _checked(report.lines, report.path)
            different = changes(report.lines[0], head) if head is not None else []
            if different:
                raise LabError(
                    f"'{report.path}' is a run with other parameters: {'; '.join(different)}. "
                    "Choose another --out or --name, or remove that folder"
                )
        except BaseException:
            report.close()
            raise
        return report

    @classmethod
    def open(cls, folder: str | os.PathLike[str], head: Line) -> Report:
        """Continue the run of this folder, or create it."""
        path = pathlib.Path(folder) / NAME
        begun = path.is_file() and b"\n" in path.read_bytes()
        return cls.resume(folder, head) if begun else cls.create(folder, head)

    def append(self, kind: str, **fields: Any) -> None:
        """Add a line; it is on the disk when this returns."""
        text = json.dumps(_finite({"kind": kind, **fields}), allow_nan=False)
        data = text.encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise LabError(
                f"cannot write report '{self.path}': {error.strerror}. What it has is kept; "
                f"continue with: penstock-lab resume {shlex.quote(str(self.folder))}"
            ) from None
        self.lines.append(json.loads(text))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
