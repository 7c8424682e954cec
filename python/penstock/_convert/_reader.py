# SPDX-License-Identifier: Apache-2.0
"""The interface between `penstock.convert` and the formats.

The file of a format has two functions:

    recognise(path)        True if a local path looks like this format. It must be cheap, and must
                           not import the library of the format
    open(source, choice)   a Reader. It is called again in each worker process
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Choice:
    """What to take of a dataset.

    columns  column name to type; an empty type is found from the data. None: all columns
    key      the column with the keys; None: the keys of the dataset if it has some, or else
             numbers; "": numbers
    label    the column with the class numbers or class names; None: as the dataset declares
    """

    columns: Mapping[str, str] | None = None
    key: str | None = None
    label: str | None = None


class Reader(Protocol):
    """A dataset of another library, in its own order. A malformed dataset raises InvalidError."""

    @property
    def schema(self) -> Mapping[str, str]:
        """Field name to type, as for penstock.Writer."""

    @property
    def classes(self) -> Sequence[str]:
        """The class names of class_field; empty if the dataset has none."""

    @property
    def class_field(self) -> str | None:
        """The field with the class numbers, or with class names as text: convert numbers those."""

    @property
    def parts(self) -> int:
        """Number of pieces that can be read independently: row groups, shards, chunks."""

    @property
    def part_rows(self) -> Sequence[int] | None:
        """Number of rows of each part, if it is known without reading them. The pack then has
        exactly the order of the dataset, and the time left is known."""

    def rows(self, part: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Key and values of the rows of a part, in order. Needs memory for a few rows only."""
