# SPDX-License-Identifier: Apache-2.0
"""What a page consists of. All texts are plain: nothing in them is markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Heading(NamedTuple):
    text: str
    level: int = 2


class Text(NamedTuple):
    text: str


class Notice(NamedTuple):
    """A text that must not be missed: a warning, or that figures are simulated."""

    text: str


class Command(NamedTuple):
    """A command that repeats what is above."""

    text: str


class Table(NamedTuple):
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """An SVG from lab/plots, and a text for those who cannot see it."""

    svg: str
    text: str


Block = Heading | Text | Notice | Command | Table | Picture
